# Tests several hosts in "snowflake.lease_conninfo". If one host does not answer or grants no lease, the server must try
# the next host in "snowflake.lease_conninfo".

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use IO::Socket::INET;
use PostgreSQL::Test::Utils;
use Snowflake::LeaseServer;
use Snowflake::Ledger;
use Snowflake::Node;
use Snowflake::Resolver;
use Test::More;

my $lease_server = Snowflake::LeaseServer->create('lease_server', conf => "listen_addresses = '127.0.0.1'\n");
$lease_server->start;
$lease_server->install;
$lease_server->safe_psql('postgres', q{
	SELECT snowflake_fleet.create_fleet(lease => '12 s', max_lead => '1 s', max_skew => '3 s');
	SELECT snowflake_fleet.add_server('alpha');
	-- A role whose settings end whatever takes long, and a lease server that is slow.
	ALTER ROLE alpha SET statement_timeout = '100ms'; ALTER ROLE alpha SET lock_timeout = '1ms';
	ALTER ROLE alpha SET idle_session_timeout = '5s'; ALTER ROLE alpha SET idle_in_transaction_session_timeout = '1s';
	ALTER ROLE alpha SET default_transaction_read_only = on; ALTER ROLE alpha SET default_transaction_isolation = 'serializable';
	CREATE TABLE seen (name text, setting text);
	CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
	  PERFORM pg_sleep(0.2);
	  INSERT INTO public.seen SELECT name, setting FROM pg_settings WHERE name ~ 'timeout$|^tcp_';
	  RETURN NULL;
	END $$;
	CREATE TRIGGER look AFTER UPDATE OF grant_number ON snowflake_fleet.region FOR EACH STATEMENT EXECUTE FUNCTION look()});

# The kernel accepts connections to the port of $silent, but no process answers.
my $silent = IO::Socket::INET->new(Listen => 64, LocalAddr => '127.0.0.2', LocalPort => $lease_server->port, Proto => 'tcp')
  or die "127.0.0.2: $!";

my $ledger = Snowflake::Ledger->new;
my $server = Snowflake::Node->create('server',
	conf => "snowflake.leased_regions = '0-3'\nsnowflake.lease = 12s\nsnowflake.max_skew = 3s\nsnowflake.max_wait = 60s\n");
my $resolver = Snowflake::Resolver->new($server);
my $service_file = $server->basedir . '/services';
append_to_file($service_file, "[fleet]\nhost=127.0.0.2,127.0.0.1\nport=" . $lease_server->port . "\n");
$server->preload(undef, PGSERVICEFILE => $service_file);

sub connect_by
{
	my ($conninfo) = @_;
	$server->append_conf('postgresql.conf', "snowflake.lease_conninfo = '$conninfo dbname=postgres user=alpha'\n");
	$server->restart;
	$ledger->new_server_run;
	return;
}
sub mint { return $ledger->record('psql', $server->ids('SELECT snowflake.next_id(g % 40) FROM generate_series(1, 500) g')); }
sub renewed_since
{
	my ($event) = @_;
	my $now = $server->safe_psql('postgres', 'SELECT clock_timestamp()');
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok($server->poll_query_until('postgres', "SELECT last_renewal > '$now' AND region IS NOT NULL FROM snowflake.lease"), $event)
	  or diag $server->safe_psql('postgres', 'SELECT * FROM snowflake.lease');
	mint();
	return;
}

# Tests a list of hosts of which only the second answers. The hosts are listed in the connection string or a service
# file, or are addresses of one host name.
$server->append_conf('postgresql.conf', "snowflake.lease_conninfo = 'host=127.0.0.2,127.0.0.1 port=" . $lease_server->port . " dbname=postgres user=alpha'\n");
$server->start;
$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');
renewed_since('the lease is renewed if the first host of the list is silent');
like($server->log_content, qr/WARNING:  snowflake: the lease server did not answer in time: stopped waiting for 127.0.0.2, port \d+/,
	'the log names the silent host');
is($lease_server->safe_psql('postgres', q{SELECT DISTINCT name, setting FROM seen WHERE name ~ '^(statement|transaction|idle)' AND setting <> '0'}), '',
	'the timeouts of its role are off in the session of a renewal');
is($lease_server->safe_psql('postgres', q{SELECT DISTINCT ON (name) name, setting FROM seen WHERE name ~ '^tcp_' ORDER BY name}),
	"tcp_keepalives_count|3\ntcp_keepalives_idle|10\ntcp_keepalives_interval|5\ntcp_user_timeout|20000",
	'the session of a renewal has limits that end a broken connection within half a minute');
$lease_server->safe_psql('postgres', 'DROP TRIGGER look ON snowflake_fleet.region');
connect_by('service=fleet');
renewed_since('the lease is renewed if the first host of a service file is silent');
$resolver->set('fleet.example' => [ 0, '127.0.0.2', '127.0.0.1' ]);
connect_by('host=fleet.example port=' . $lease_server->port);
renewed_since('the lease is renewed if the first address of a name is silent');
like($server->log_content, qr/stopped waiting for fleet.example \(127.0.0.2\), port \d+/, 'the log names the silent address');

# A server must look up the host name of the lease server again for each request.
$resolver->set('fleet.example' => [ 0, '127.0.0.2' ]);
$server->poll_query_until('postgres', 'SELECT missed_renewals > 1 FROM snowflake.lease') or die 'it answers';
$resolver->set('fleet.example' => [ 0, '127.0.0.1' ]);
renewed_since('the lease is renewed when the name has another address');

# Tests a list of hosts of which the first is a lease server that grants no lease.
my $other = Snowflake::LeaseServer->create('other');
$other->start;
$other->install;
$other->safe_psql('postgres', q{
	SELECT snowflake_fleet.create_fleet(lease => '12 s', max_lead => '1 s', max_skew => '3 s');
	SELECT snowflake_fleet.add_server('alpha')});
my $both = sprintf q{host=''%s,127.0.0.1'' port=%s,%s}, $other->host, $other->port, $lease_server->port;
my $holder = $other->session;
$holder->query_safe('BEGIN; SELECT snowflake_fleet.lock_fleet()');
connect_by($both);
renewed_since('the lease is renewed if another session locks the fleet on the first host');
$holder->quit;
$other->safe_psql('postgres', q{SELECT snowflake_fleet.remove_server('alpha')});
connect_by($both);
renewed_since('the lease is renewed if the first host refuses');
like($server->log_content, qr/WARNING:  snowflake: the lease server refused: .*42501/, 'the log shows why the first host refused');
$other->safe_psql('postgres', q{SELECT snowflake_fleet.add_server('alpha'); UPDATE snowflake_fleet.fleet SET timeline = timeline + 1; SELECT snowflake_fleet.sign_rows()});
connect_by($both);
renewed_since('the lease is renewed if the first host waits for an operator');
like($server->log_content, qr/WARNING:  snowflake: the lease server at \S+, port \d+ waits for an operator: .*snowflake_fleet\.health of the lease server shows what to do/,
	'the log names the host that waits for an operator, and where the solutions are');
$server->stop;

# Tests a connection string with a short connect_timeout.
my $patient = Snowflake::Node->create('patient', conf => "snowflake.leased_regions = '0-3'\nsnowflake.max_wait = 60s\nsnowflake.lease_conninfo = 'host=127.0.0.2 port="
	  . $lease_server->port . " connect_timeout=1 user=alpha'\n");
$patient->start;
$patient->safe_psql('postgres', 'CREATE EXTENSION snowflake');
my $before = time;
$patient->poll_query_until('postgres', 'SELECT missed_renewals >= 4 FROM snowflake.lease') or die 'no attempts';
cmp_ok(time - $before, '<', 30, 'connect_timeout limits each attempt: four attempts take less time than without it');
$patient->stop;

$ledger->check(3_000, 'ids are unique over all hosts');
done_testing();
