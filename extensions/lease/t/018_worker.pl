# The process of the worker: it is canceled, ended and in error, after a clock that went back, and without a free slot. And a
# lease server on the server itself.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Control;
use Snowflake::Ledger;
use Snowflake::Node;
use Test::More;

my $control = Snowflake::Control->create('control');
$control->start;
$control->install;
$control->safe_psql('postgres', q{
	SELECT snowflake_fleet.create_fleet(lease => '20 s', max_lead => '1 s', max_skew => '3 s');
	SELECT snowflake_fleet.add_server('alpha')});
sub leasing
{
	my ($node) = @_;
	return "snowflake.leased_regions = '0-3'\nsnowflake.lease = 20s\nsnowflake.max_skew = 3s\nsnowflake.max_wait = 30s\n"
	  . sprintf qq{snowflake.lease_conninfo = 'host=''%s'' port=%s dbname=postgres user=alpha'\n}, $node->host, $node->port;
}
my $server = Snowflake::Node->create_running('server', allows_streaming => 1, conf => leasing($control));
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

# Tools that end idle sessions do not see the worker as one. If it is terminated, the lease does not end.
is($server->safe_psql('postgres', "SELECT coalesce(state, 'none') FROM $workers"), 'none', 'it is no idle session');
$control->stop;
my $first = worker();
$server->safe_psql('postgres', "SELECT pg_terminate_backend($first)");
ok($server->poll_query_until('postgres', "SELECT count(*) = 1 FROM $workers AND pid <> $first"), 'ended, it has a successor');
ok($server->poll_query_until('postgres', q{SELECT last_message LIKE 'could not connect%' FROM snowflake.lease}), 'which asks');
is(lease(), $held, 'the region is kept, while the lease server is away');
mint();
is($server->safe_psql('postgres', "SELECT count(*) FROM $workers"), '1', 'one worker at a time');
$control->start;
renewed('and renewed when it is back');
is(lease(), $held, 'the same region and incarnation');

# A cancel ends only the attempt. The process stays.
my $cancelled = worker();
$server->safe_psql('postgres', "SELECT pg_cancel_backend($cancelled)");
renewed('cancelled, it goes on');
is(worker(), $cancelled, 'as the same process');
like($server->log_content, qr/ERROR:  canceling statement/, 'and the log says so');

# An error of PostgreSQL: no file descriptor is left for waiting.
my $limited = worker();
my %used = map { m{/(\d+)$} ? ($1 => 1) : () } glob "/proc/$limited/fd/*";
my ($free) = grep { !$used{$_} } 0 .. 1000;
command_ok([ 'prlimit', "--pid=$limited", '--nofile=' . ($free + 1) . ':' ], 'file descriptors are limited');
ok($server->poll_query_until('postgres', q{SELECT last_message LIKE 'the lease worker met an error%' FROM snowflake.lease}), 'an error, and the view says so')
  or diag $server->safe_psql('postgres', 'SELECT * FROM snowflake.lease');
command_ok([ 'prlimit', "--pid=$limited", '--nofile=1000:' ], 'and no more');
renewed('after errors it goes on');
is(worker(), $limited, 'as the same process');

# The worker ends while the clock is ahead, and the clock is then corrected. PostgreSQL restarts failed workers by the
# clock.
$server->clock->set(600);
$server->poll_query_until('postgres', q{SELECT last_message LIKE '%refused to lease%' FROM snowflake.lease}) or die 'it is not refused';
$server->safe_psql('postgres', 'SELECT pg_terminate_backend(' . worker() . ')');
$server->clock->set(0);
ok($server->poll_query_until('postgres', "SELECT count(*) = 1 FROM $workers AND pid <> $limited"), 'ended, and the clock went back: a successor at once');
renewed('which leases');

# The postmaster is suspended, so no worker starts. When the lease has ended, health shows this.
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
ok(poll_session(q{SELECT last_message = 'the lease worker is not running' FROM snowflake.lease}), 'without a worker: the view says so at once');
ok(poll_session(q{SELECT reason = 'the lease worker is not running' AND NOT minting FROM snowflake.health}), 'and health, when there is no lease any more');
like($session->query(q{SET snowflake.max_wait = '100ms'; SELECT snowflake.next_id(1)}) . $session->{stderr},
	qr/ERROR:  the lease worker is not running/, 'and who is refused');
kill 'CONT', $postmaster;
renewed('and then there is one again');
eval { $session->quit };

# No slot for two at once: it does not end.
$server->append_conf('postgresql.conf', "max_logical_replication_workers = 0\nmax_worker_processes = 1\n");
$server->restart;
$ledger->new_server_run;
mint();
my $only = worker();
my $since = -s $server->logfile;
$server->safe_psql('postgres', "SELECT pg_terminate_backend($only)");
$server->wait_for_log(qr/LOG:  snowflake: the lease worker was asked to end, and continues/, $since);
renewed('without a slot for a successor, it goes on itself');
is(worker(), $only, 'as the same process');

# After two restarts of the worker, the lease is returned once.
$server->append_conf('postgresql.conf', "max_worker_processes = 8\n");
$server->restart;
$ledger->new_server_run;
mint();
$server->backup('standby');
$server->stop;
like($server->log_content, qr/LOG:  snowflake: gave region \d+ back(?!.*snowflake:)/s, 'a stop gives the region back');

# Without any slot the server does not start: it would never mint.
$server->append_conf('postgresql.conf', "max_logical_replication_workers = 4\nmax_worker_processes = 1\n");
$since = -s $server->logfile;
ok(!$server->start(fail_ok => 1), 'without a slot the server does not start');
like(substr($server->log_content, $since), qr/FATAL:  there is no room for the worker that leases regions\n.*DETAIL:  "max_worker_processes" is 1.*\n.*HINT:  Raise "max_worker_processes"/,
	'and says why');
$server->append_conf('postgresql.conf', "max_worker_processes = 8\n");

# A standby has none.
my $standby = Snowflake::Node->create_from_backup('standby', $server, 'standby');
$standby->set_standby_mode;
$standby->start;
is($standby->safe_psql('postgres', 'SELECT last_message FROM snowflake.lease'), 'the lease worker is not running', 'where there is no worker, the view says so');
$standby->stop;

# If a fleet grants less than the server's lead, the server does not repeat its request at once.
$control->safe_psql('postgres', 'CREATE DATABASE short');
$control->install('short');
$control->safe_psql('short', q{
	SELECT snowflake_fleet.create_fleet(lease => '5 s', max_lead => '1 s', max_skew => '1 s');
	SELECT snowflake_fleet.add_server('alpha')});
$server->append_conf('postgresql.conf', leasing($control) =~ s/dbname=postgres/dbname=short/r . "snowflake.max_lead = 60s\nsnowflake.lease = 1h\n");
$server->start;
$server->poll_query_until('postgres', 'SELECT region IS NOT NULL FROM snowflake.lease') or die 'no region';
my $asked = $control->safe_psql('short', 'SELECT newest FROM snowflake_fleet.fleet');
sleep 5;
cmp_ok($control->safe_psql('short', 'SELECT newest FROM snowflake_fleet.fleet') - $asked, '<=', 10, 'a lease shorter than the lead is renewed about once a second');
$server->stop;

# If the lease server is this server, it accepts no connection while it stops, so the worker does not try to return the
# lease.
my $both = Snowflake::Node->create('both');
$both->append_conf('postgresql.conf', "fsync = on\n" . leasing($both));
$both->start;
$both->safe_psql('postgres', q{
	CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_fleet;
	SELECT snowflake_fleet.create_fleet(lease => '20 s', max_lead => '1 s', max_skew => '3 s');
	SELECT snowflake_fleet.add_server('alpha')});
is(scalar(my @ids = $both->ids('SELECT snowflake.next_id(1)')), 1, 'a server with its own lease server mints');
$both->stop;
like($both->log_content, qr/LOG:  snowflake: region \d+ is not given back: its lease server is this server's own/, 'its region is not given back');
unlike($both->log_content, qr/could not give region/, 'nor is that tried');

$ledger->check(3_000, 'whoever the worker was');
done_testing();
