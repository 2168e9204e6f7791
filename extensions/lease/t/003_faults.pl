# Tests that ids stay unique if a server or its connection to the lease server fails.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use PostgreSQL::Test::Utils;
use Snowflake::LeaseServer;
use Snowflake::Ledger;
use Snowflake::Node;
use Test::More;

my $lease_server = Snowflake::LeaseServer->create('lease_server', allows_streaming => 1);
$lease_server->start;
sub connection
{
	my ($database, $role) = @_;
	return sprintf q{host=''%s'' port=%s dbname=%s user=%s}, $lease_server->host, $lease_server->port, $database, $role;
}
sub leasing
{
	my ($database, $role, $lease, $skew, $regions) = @_;
	return "restart_after_crash = on\nsnowflake.max_wait = 30s\nsnowflake.leased_regions = '$regions'\nsnowflake.lease = $lease\nsnowflake.max_skew = $skew\n"
	  . "snowflake.lease_conninfo = '" . connection($database, $role) . "'\n";
}
sub mint
{
	my ($node, $count, $database) = @_;
	return $node->ids("SELECT snowflake.next_id(g % 3) FROM generate_series(1, $count) g", $database);
}
sub twice { my %seen; return scalar grep { $seen{$_}++ } @_; }

$lease_server->install;
$lease_server->safe_psql('postgres', q{
	SELECT snowflake_fleet.create_fleet(lease => '60 s', max_lead => '1 s', max_skew => '5 s');
	SELECT snowflake_fleet.add_server('alpha');
	CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no commit'; END $$;
	CREATE CONSTRAINT TRIGGER refuse AFTER UPDATE ON snowflake_fleet.region DEFERRABLE INITIALLY DEFERRED
	  FOR EACH ROW EXECUTE FUNCTION refuse()});

# A server must not use a lease that the lease server has sent but could not commit.
my $server = Snowflake::Node->create('server', conf => leasing('postgres', 'alpha', '60s', '5s', '0-3'));
$server->start;
$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');
$server->poll_query_until('postgres', "SELECT last_message IS NOT NULL FROM snowflake.lease") or die 'nothing said';
like($server->safe_psql('postgres', 'SELECT last_message FROM snowflake.lease'), qr/no commit/, 'the view lease shows the failed commit of the lease server');
is($server->safe_psql('postgres', 'SELECT region IS NULL FROM snowflake.lease'), 't', 'the server has no region after the failed commit');
# A server must not use a lease if the lease server's wait for its synchronous standby was cancelled.
$lease_server->reconfigure(synchronous_standby_names => "'nobody'");
$lease_server->safe_psql('postgres', 'SET synchronous_commit = local; DROP TRIGGER refuse ON snowflake_fleet.region');
my $waits = q{SELECT pid FROM pg_stat_activity WHERE usename = 'alpha' AND wait_event = 'SyncRep'};
$lease_server->poll_query_until('postgres', "SELECT count(*) >= 1 FROM ($waits) AS w") or die 'nobody waits for the standby';
is($server->safe_psql('postgres', 'SELECT region IS NULL FROM snowflake.lease'), 't', 'the server has no region while the lease server waits for its standby');
$lease_server->safe_psql('postgres', "SELECT pg_cancel_backend(pid) FROM ($waits) AS w");
ok($server->poll_query_until('postgres', "SELECT region IS NOT NULL OR last_message LIKE '%answered with a warning: canceling wait%' FROM snowflake.lease"),
	'the view lease shows the warning after the wait was cancelled');
is($server->safe_psql('postgres', 'SELECT region IS NULL FROM snowflake.lease'), 't', 'the server has no region after the wait was cancelled');
$lease_server->append_conf('postgresql.conf', "synchronous_standby_names = ''\n");
$lease_server->reload;
is(scalar(mint($server, 10)), 10, 'the server mints when the lease server no longer waits for a standby');

# Drops and creates a database, and sets the clock back. New ids must be greater than the ids of the dropped database.
my @ids;
sub goes_on_when_recreated
{
	my ($crash, $name) = @_;
	my ($before) = $server->ids('SELECT max(i) FROM unnest(snowflake.next_ids(1, 5000)) i', 'other');
	$server->clock->step(-4);
	$server->safe_psql('postgres', 'DROP DATABASE other');
	if ($crash)
	{
		my $session = $server->session;
		$server->kill_backend($session->query_safe('SELECT pg_backend_pid()'));
		eval { $session->quit };
	}
	$server->create_database('other');
	push @ids, mint($server, 100, 'other');
	my ($after) = $server->ids('SELECT snowflake.next_id(1)', 'other');
	cmp_ok($after, '>', $before, $name);
	$server->clock->set(0);
	return;
}
$server->create_database('other');
goes_on_when_recreated(0, 'ids of a database that was created again are above the old ones, with the clock set back');
goes_on_when_recreated(1, 'ids of a database that was created again are above the old ones, over a crash restart');

# Kills the lease worker with SIGKILL, and ends the next lease worker with pg_terminate_backend().
my $worker = q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'snowflake lease'};
my $first = $server->safe_psql('postgres', $worker);
my $incarnation = $server->safe_psql('postgres', 'SELECT incarnation FROM snowflake.lease');
kill 9, $first or die "kill: $!";
$server->poll_query_until('postgres', "SELECT coalesce((SELECT pid <> $first FROM ($worker) AS w), false)") or die 'no new worker';
push @ids, mint($server, 100, 'other');
is($server->safe_psql('postgres', 'SELECT incarnation FROM snowflake.lease'), $incarnation, 'the server is the same incarnation after the worker was killed');
my $second = $server->safe_psql('postgres', $worker);
$server->safe_psql('postgres', "SELECT pg_terminate_backend($second)");
$server->poll_query_until('postgres', "SELECT coalesce((SELECT pid <> $second FROM ($worker) AS w), false)") or die 'no new worker';
push @ids, mint($server, 100, 'other');
is(twice(@ids), 0, 'ids are unique after the worker was terminated');
$server->stop;

# Suspends all processes of a server until its lease has ended and another server has leased its region.
$lease_server->safe_psql('postgres', 'CREATE DATABASE narrow');
$lease_server->install('narrow');
$lease_server->safe_psql('narrow', q{
	SELECT snowflake_fleet.create_fleet(lease => '6 s', max_lead => '1 s', max_skew => '1 s');
	SELECT snowflake_fleet.add_server('alpha')});
my %pair = map {
	my $node = Snowflake::Node->create($_, conf => "snowflake.layout = '41/13/10'\n" . leasing('narrow', 'alpha', '6s', '1s', '0'));
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');
	$_ => $node
} 'alpha', 'beta';
my @both = mint($pair{alpha}, 1000);
$pair{beta}->refuses("SET snowflake.max_wait = '1s'; SELECT snowflake.next_id(1)", { sqlstate => '55000',
	message => 'this server has not leased a region', detail => 'no region of this server is free before .*region 0 of server alpha until', hint => 'check the lease server' },
	'the error of the second server shows which server holds the region, and until when');
my $session = $pair{alpha}->session;
push @both, split /\n/, $session->query_safe('SELECT snowflake.next_id(g % 3) FROM generate_series(1, 100) g');
my @stopped = ($pair{alpha}->safe_psql('postgres', 'SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()') =~ /\d+/g);
push @stopped, slurp_file($pair{alpha}->data_dir . '/postmaster.pid') =~ /^(\d+)/;
kill 'STOP', @stopped;
my @taken = mint($pair{beta}, 1000);
is(scalar(@taken), 1000, 'the second server mints when the lease of the suspended one has ended');
kill 'CONT', @stopped;
push @both, @taken;
my $answer = $session->query("SET snowflake.max_wait = '2s'; SELECT snowflake.next_id(g % 3) FROM generate_series(1, 100) g");
push @both, grep { /^\d+$/ } split /\n/, $answer;
push @both, mint($pair{beta}, 1000);
is(twice(@both), 0, 'ids are unique when the suspended server continues');
like($session->{stderr}, qr/this server has not leased a region|the lease of region 0 has ended/, 'the error of the server that was suspended explains why it cannot mint');
eval { $session->quit };
$pair{beta}->stop;
is(scalar(mint($pair{alpha}, 10)), 10, 'after a clean stop of the second server the first one mints');

done_testing();
