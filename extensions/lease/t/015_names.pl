# Tests a server that leases its region while the DNS server does not answer.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use PostgreSQL::Test::Utils ();
use Snowflake::LeaseServer;
use Snowflake::Node;
use Snowflake::Resolver;
use Test::More;

my $lease_server = Snowflake::LeaseServer->create('lease_server', conf => "listen_addresses = '127.0.0.1'\n");
$lease_server->start;
$lease_server->install;
$lease_server->safe_psql('postgres', q{SELECT snowflake_fleet.add_server('alpha')});
my $server = Snowflake::Node->create('server', conf => "snowflake.leased_regions = '0-3'\nsnowflake.max_wait = 200ms\nsnowflake.lease_conninfo = 'host=fleet.example port="
	  . $lease_server->port . " dbname=postgres user=alpha'\n");
my $resolver = Snowflake::Resolver->new($server);

# A look-up of one hour takes longer than pg_ctl waits for a stop of the server.
my @never = (3600, '127.0.0.1');
# Returns the process that renews the lease, and its child processes.
sub processes_of
{
	my ($worker) = @_;
	my @processes = ((grep { -e "/proc/$_" } $worker), Snowflake::Node::children_of($worker));
	return @processes;
}
sub worker { return $server->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'snowflake lease'}); }
sub stops
{
	my ($name, $mode) = @_;
	my $worker = worker();
	my $since = time;
	$server->stop($mode);
	cmp_ok(time - $since, '<', 30, "$name: the server stops within 30 s");
	is(join(' ', processes_of($worker)), '', "$name: no process of the worker remains");
	return;
}
sub looked_up { return $server->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'snowflake lease'}) && wait_for_child(worker()); }
sub wait_for_child
{
	my ($worker) = @_;
	my $tries = 10 * $PostgreSQL::Test::Utils::timeout_default;
	while (processes_of($worker) < 2) { return 0 if --$tries == 0; select undef, undef, undef, 0.1; }
	return 1;
}

$resolver->set('fleet.example' => \@never);
$server->start;
$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');
ok(looked_up(), 'a child process of the worker looks up the name');
$server->refuses('SELECT snowflake.next_id(1)', { sqlstate => '55000', message => 'this server has not leased a region', hint => 'check the lease server' }, 'next_id() fails while the name is looked up');
$server->reload;
stops('a fast stop while a name is looked up', 'fast');
$server->start;
ok(looked_up(), 'after a restart a child process of the worker looks up the name');
stops('an immediate stop while a name is looked up', 'immediate');

# If the look-up of the lease server's host name times out, the lease worker must repeat the look-up.
$server->start;
ok($server->poll_query_until('postgres', q{SELECT last_message LIKE '%the look-up of host name "fleet.example" did not answer in time' FROM snowflake.lease}), 'the view lease shows that the look-up did not answer in time')
  or diag $server->safe_psql('postgres', 'SELECT * FROM snowflake.lease');
$resolver->set('fleet.example' => [ 0, '127.0.0.1' ]);
ok($server->poll_query_until('postgres', 'SELECT region IS NOT NULL FROM snowflake.lease'), 'the server leases a region when the name server answers');
is(scalar($server->ids('SELECT snowflake.next_id(1)')), 1, 'the server mints when the name server answers');

# A server that cannot give its region back, because the DNS server does not answer, must stop without a wait.
$resolver->set('fleet.example' => \@never);
stops('a fast stop with a region', 'fast');
like($server->log_content, qr/LOG:  snowflake: could not give region \d+ back: could not connect .*look-up of host name "fleet.example" did not answer in time/, 'the log shows that the region could not be returned');

# Tests a lease server whose host name does not exist.
$resolver->set('fleet.example' => [0]);
$server->start;
ok($server->poll_query_until('postgres', q{SELECT last_message LIKE 'could not connect to the lease server: host name "fleet.example" has no address: %' FROM snowflake.lease}),
	'the view lease shows that the name has no address');
stops('a fast stop with a name that does not exist', 'fast');

done_testing();
