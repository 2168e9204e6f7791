# Tests faults of the process that renews a lease, the lease worker. Tests a server without a free background worker,
# and a server that is its own lease server.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use PostgreSQL::Test::Utils;
use Snowflake::LeaseServer;
use Snowflake::Ledger;
use Snowflake::Node;
use Test::More;

my $lease_server = Snowflake::LeaseServer->create('lease_server');
$lease_server->start;
$lease_server->install;
$lease_server->safe_psql('postgres', q{
	SELECT snowflake_fleet.create_fleet(lease => '20 s', max_lead => '1 s', max_skew => '3 s');
	SELECT snowflake_fleet.add_server('alpha')});
sub leasing
{
	my ($node) = @_;
	return "snowflake.leased_regions = '0-3'\nsnowflake.lease = 20s\nsnowflake.max_skew = 3s\nsnowflake.max_wait = 30s\n"
	  . sprintf qq{snowflake.lease_conninfo = 'host=''%s'' port=%s dbname=postgres user=alpha'\n}, $node->host, $node->port;
}
my $server = Snowflake::Node->create_running('server', allows_streaming => 1, conf => leasing($lease_server));
my $ledger = Snowflake::Ledger->new;
sub mint { return $ledger->record('psql', $server->ids('SELECT snowflake.next_id(g % 40) FROM generate_series(1, 500) g')); }
sub lease { return $server->safe_psql('postgres', 'SELECT region, incarnation FROM snowflake.lease'); }
my $workers = q{pg_stat_activity WHERE backend_type = 'snowflake lease'};
sub worker { return $server->safe_psql('postgres', "SELECT pid FROM $workers"); }
sub renewed
{
	my ($name) = @_;
	my $now = $server->safe_psql('postgres', 'SELECT clock_timestamp()');
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok($server->poll_query_until('postgres', "SELECT last_renewal > '$now' FROM snowflake.lease"), $name)
	  or diag $server->safe_psql('postgres', 'SELECT * FROM snowflake.lease');
	mint();
	return;
}
mint();
my $held = lease();

# pg_stat_activity must not show the lease worker as an idle session, because tools terminate idle sessions.
is($server->safe_psql('postgres', "SELECT coalesce(state, 'none') FROM $workers"), 'none', 'pg_stat_activity does not show the worker as an idle session');
$lease_server->stop;
my $first = worker();
$server->safe_psql('postgres', "SELECT pg_terminate_backend($first)");
ok($server->poll_query_until('postgres', "SELECT count(*) = 1 FROM $workers AND pid <> $first"), 'after the worker was terminated, another one starts');
ok($server->poll_query_until('postgres', q{SELECT last_message LIKE 'could not connect%' FROM snowflake.lease}), 'the new worker sends requests');
is(lease(), $held, 'the server keeps its region while the lease server is stopped');
mint();
is($server->safe_psql('postgres', "SELECT count(*) FROM $workers"), '1', 'there is one worker');
$lease_server->start;
renewed('the lease is renewed when the lease server is back');
is(lease(), $held, 'the server has the same region and incarnation with a new worker');

# pg_cancel_backend() ends the current request of the lease worker, but not its process.
my $cancelled = worker();
$server->safe_psql('postgres', "SELECT pg_cancel_backend($cancelled)");
renewed('the lease is renewed after the worker was cancelled');
is(worker(), $cancelled, 'the worker is the same process after a cancel');
like($server->log_content, qr/ERROR:  canceling statement/, 'the log shows the cancel');

# Sets the limit of file descriptors of the lease worker so low that PostgreSQL raises an error.
my $limited = worker();
my %used = map { m{/(\d+)$} ? ($1 => 1) : () } glob "/proc/$limited/fd/*";
my ($free) = grep { !$used{$_} } 0 .. 1000;
command_ok([ 'prlimit', "--pid=$limited", '--nofile=' . ($free + 1) . ':' ], 'the file descriptors of the worker are limited');
ok($server->poll_query_until('postgres', q{SELECT last_message LIKE 'the lease worker raised an error%' FROM snowflake.lease}), 'the view lease shows that the worker met an error')
  or diag $server->safe_psql('postgres', 'SELECT * FROM snowflake.lease');
command_ok([ 'prlimit', "--pid=$limited", '--nofile=1000:' ], 'the limit of file descriptors is removed');
renewed('the lease is renewed after errors of the worker');
is(worker(), $limited, 'the worker is the same process after errors');

# Revokes the lease while the lease worker cannot open the files of dynamic shared memory.
my $memory = $server->data_dir . '/pg_dynshmem';
chmod 0, $memory or die $!;
$lease_server->safe_psql('postgres', "SELECT snowflake_fleet.revoke_lease(" . $held =~ s{\|.*}{}r . ")");
my $from = -s $server->logfile;
$server->wait_for_log(qr/could not open shared memory segment.*could not open shared memory segment/s, $from);
chmod 0700, $memory or die $!;
$server->poll_query_until('postgres', "SELECT incarnation <> split_part('$held', '|', 2)::bigint AND region IS NOT NULL FROM snowflake.lease") or die 'no new lease';
$ledger->new_server_run;
mint();
is(worker(), $limited, 'the worker is the same process after it could not map the memory of a database');

# Sets the clock back after the lease worker was terminated. PostgreSQL computes from the clock when to restart a
# background worker.
$server->clock->set(600);
$server->poll_query_until('postgres', q{SELECT last_message LIKE '%refused to lease%' FROM snowflake.lease}) or die 'it is not refused';
$server->safe_psql('postgres', 'SELECT pg_terminate_backend(' . worker() . ')');
$server->clock->set(0);
ok($server->poll_query_until('postgres', "SELECT count(*) = 1 FROM $workers AND pid <> $limited"), 'another worker starts at once although the clock was set back');
renewed('the lease is renewed after the clock was set back');

# Suspends the postmaster, so that no new lease worker starts. The view health must show that no lease worker is
# running.
my $session = $server->session;
$session->query_safe("SELECT 1");
sub poll_session
{
	my ($sql) = @_;
	my $tries = 10 * $PostgreSQL::Test::Utils::timeout_default;
	while ($session->query_safe($sql) !~ /^t$/m) { return 0 if --$tries == 0; select undef, undef, undef, 0.1; }
	return 1;
}
my $postmaster;
END { kill 'CONT', $postmaster if $postmaster; }
($postmaster) = slurp_file($server->data_dir . '/postmaster.pid') =~ /^(\d+)/;
kill 'STOP', $postmaster or die "kill: $!";
$session->query_safe("SELECT pg_terminate_backend(pid) FROM $workers");
ok(poll_session(q{SELECT last_message = 'the background worker "snowflake lease" is not running' FROM snowflake.lease}), 'without a worker the view lease shows that at once');
ok(poll_session(q{SELECT reason = 'the background worker "snowflake lease" is not running' AND NOT minting FROM snowflake.health}), 'without a worker health shows the reason when the lease has ended');
like($session->query(q{SET snowflake.max_wait = '100ms'; SELECT snowflake.next_id(1)}) . $session->{stderr},
	qr/ERROR:  the background worker "snowflake lease" is not running/, 'without a worker next_id() fails with this reason when the lease has ended');
kill 'CONT', $postmaster;
renewed('the lease is renewed when the postmaster continues');
eval { $session->quit };

# If max_worker_processes is 1, the lease worker must ignore pg_terminate_backend(), because no other worker could
# start.
$server->append_conf('postgresql.conf', "max_logical_replication_workers = 0\nmax_worker_processes = 1\n");
$server->restart;
$ledger->new_server_run;
mint();
my $only = worker();
my $since = -s $server->logfile;
$server->safe_psql('postgres', "SELECT pg_terminate_backend($only)");
$server->wait_for_log(qr/LOG:  snowflake: the lease worker received a request to end, but continues/, $since);
renewed('without a slot for another worker the terminated worker renews the lease');
is(worker(), $only, 'without a slot for another worker the process is the same');

# A server that stops must give its lease back only once.
$server->append_conf('postgresql.conf', "max_worker_processes = 8\n");
$server->restart;
$ledger->new_server_run;
mint();
$server->backup('standby');
$server->stop;
like($server->log_content, qr/LOG:  snowflake: gave region \d+ back(?!.*snowflake:)/s, 'the log shows that a stop returned the region');

# If max_worker_processes is too small for the lease worker, the server must not start.
$server->append_conf('postgresql.conf', "max_logical_replication_workers = 4\nmax_worker_processes = 1\n");
$since = -s $server->logfile;
ok(!$server->start(fail_ok => 1), 'without a slot for a worker the server does not start');
like(substr($server->log_content, $since), qr/FATAL:  could not register the worker that leases regions\n.*DETAIL:  "max_worker_processes" is 1.*\n.*HINT:  Raise "max_worker_processes"/,
	'the log shows that there is no slot for the worker');
$server->append_conf('postgresql.conf', "max_worker_processes = 8\n");

# A standby has no lease worker.
my $standby = Snowflake::Node->create_from_backup('standby', $server, 'standby');
$standby->set_standby_mode;
$standby->start;
is($standby->safe_psql('postgres', 'SELECT last_message FROM snowflake.lease'), 'the background worker "snowflake lease" is not running', 'the view lease of a standby shows that no worker is running');
$standby->stop;

# A server whose lease is shorter than "snowflake.max_lead" must not send requests without a pause.
$lease_server->safe_psql('postgres', 'CREATE DATABASE short');
$lease_server->install('short');
$lease_server->safe_psql('short', q{
	SELECT snowflake_fleet.create_fleet(lease => '5 s', max_lead => '1 s', max_skew => '1 s');
	SELECT snowflake_fleet.add_server('alpha')});
$server->append_conf('postgresql.conf', leasing($lease_server) =~ s/dbname=postgres/dbname=short/r . "snowflake.max_lead = 60s\nsnowflake.lease = 1h\n");
$server->start;
$server->poll_query_until('postgres', 'SELECT region IS NOT NULL FROM snowflake.lease') or die 'no region';
my $asked = $lease_server->safe_psql('short', 'SELECT newest FROM snowflake_fleet.fleet');
sleep 5;
cmp_ok($lease_server->safe_psql('short', 'SELECT newest FROM snowflake_fleet.fleet') - $asked, '<=', 10, 'a lease that is shorter than max_lead is renewed at most twice a second');
$server->stop;

# A server that is its own lease server does not give its lease back when it stops, because it then accepts no
# connections.
my $both = Snowflake::Node->create('both');
$both->append_conf('postgresql.conf', "fsync = on\n" . leasing($both));
$both->start;
$both->safe_psql('postgres', q{
	CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_fleet;
	SELECT snowflake_fleet.create_fleet(lease => '20 s', max_lead => '1 s', max_skew => '3 s');
	SELECT snowflake_fleet.add_server('alpha')});
is(scalar(my @ids = $both->ids('SELECT snowflake.next_id(1)')), 1, 'a server with its own lease server mints');
$both->stop;
like($both->log_content, qr/LOG:  snowflake: region \d+ is not given back, because the lease server is this server, which is stopping/, 'the log shows that the region is not returned, because the lease server is the server itself');
unlike($both->log_content, qr/could not give region/, 'the worker does not try to return the region');

$ledger->check(3_000, 'ids are unique over all workers');
done_testing();
