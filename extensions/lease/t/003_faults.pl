# Tests faults between a server and its lease server, and within the server: each id is unique.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Control;
use Snowflake::Ledger;
use Snowflake::Node;
use Test::More;

my $control = Snowflake::Control->create('control', allows_streaming => 1);
$control->start;
sub connection
{
	my ($database, $role) = @_;
	return sprintf q{host=''%s'' port=%s dbname=%s user=%s}, $control->host, $control->port, $database, $role;
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

$control->install;
$control->safe_psql('postgres', q{
	SELECT snowflake_fleet.create_fleet(lease => '60 s', max_lead => '1 s', max_skew => '5 s');
	SELECT snowflake_fleet.add_server('alpha');
	CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no commit'; END $$;
	CREATE CONSTRAINT TRIGGER refuse AFTER UPDATE ON snowflake_fleet.region DEFERRABLE INITIALLY DEFERRED
	  FOR EACH ROW EXECUTE FUNCTION refuse()});

# The rows come, and then the commit fails: that was no grant.
my $server = Snowflake::Node->create('server', conf => leasing('postgres', 'alpha', '60s', '5s', '0-3'));
$server->start;
$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');
$server->poll_query_until('postgres', "SELECT last_message IS NOT NULL FROM snowflake.lease") or die 'nothing said';
like($server->safe_psql('postgres', 'SELECT last_message FROM snowflake.lease'), qr/no commit/, 'a commit that fails');
is($server->safe_psql('postgres', 'SELECT region IS NULL FROM snowflake.lease'), 't', 'rows whose commit fails are no answer');
# A cancelled wait for a standby reports a commit, with a warning.
$control->append_conf('postgresql.conf', "synchronous_standby_names = 'nobody'\n");
$control->reload;
$control->poll_query_until('postgres', q{SELECT current_setting('synchronous_standby_names') = 'nobody'}) or die 'no reload';
$control->safe_psql('postgres', 'SET synchronous_commit = local; DROP TRIGGER refuse ON snowflake_fleet.region');
my $waits = q{SELECT pid FROM pg_stat_activity WHERE usename = 'alpha' AND wait_event = 'SyncRep'};
$control->poll_query_until('postgres', "SELECT count(*) >= 1 FROM ($waits) AS w") or die 'nobody waits for the standby';
is($server->safe_psql('postgres', 'SELECT region IS NULL FROM snowflake.lease'), 't', 'no answer while the standby is away');
$control->safe_psql('postgres', "SELECT pg_cancel_backend(pid) FROM ($waits) AS w");
ok($server->poll_query_until('postgres', "SELECT region IS NOT NULL OR last_message LIKE '%answered with a warning: canceling wait%' FROM snowflake.lease"),
	'the wait is cancelled');
is($server->safe_psql('postgres', 'SELECT region IS NULL FROM snowflake.lease'), 't', 'a cancelled wait is no answer');
$control->append_conf('postgresql.conf', "synchronous_standby_names = ''\n");
$control->reload;
is(scalar(mint($server, 10)), 10, 'and then it mints');

# After a database was dropped and the clock was set back, its successor begins above the old ids.
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
goes_on_when_recreated(0, 'a database dropped and made again, with the clock back: its ids go on above');
goes_on_when_recreated(1, 'and over a crash');

# The worker is killed, and ended by an operator.
my $worker = q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'snowflake lease'};
my $first = $server->safe_psql('postgres', $worker);
my $incarnation = $server->safe_psql('postgres', 'SELECT incarnation FROM snowflake.lease');
kill 9, $first or die "kill: $!";
$server->poll_query_until('postgres', "SELECT coalesce((SELECT pid <> $first FROM ($worker) AS w), false)") or die 'no new worker';
push @ids, mint($server, 100, 'other');
is($server->safe_psql('postgres', 'SELECT incarnation FROM snowflake.lease'), $incarnation, 'the worker is killed: the same incarnation');
my $second = $server->safe_psql('postgres', $worker);
$server->safe_psql('postgres', "SELECT pg_terminate_backend($second)");
$server->poll_query_until('postgres', "SELECT coalesce((SELECT pid <> $second FROM ($worker) AS w), false)") or die 'no new worker';
push @ids, mint($server, 100, 'other');
is(twice(@ids), 0, 'the worker is ended, and started again: no id twice');
$server->stop;

# One region and no spare: a server that is stopped beyond its lease, and another of the same login that takes over.
$control->safe_psql('postgres', 'CREATE DATABASE narrow');
$control->install('narrow');
$control->safe_psql('narrow', q{
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
	message => 'this server has no region', detail => 'no region of this server is free before .*region 0 of server alpha until', hint => 'Check' },
	'who holds what until when');
my $session = $pair{alpha}->session;
push @both, split /\n/, $session->query_safe('SELECT snowflake.next_id(g % 3) FROM generate_series(1, 100) g');
my @stopped = ($pair{alpha}->safe_psql('postgres', 'SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()') =~ /\d+/g);
push @stopped, slurp_file($pair{alpha}->data_dir . '/postmaster.pid') =~ /^(\d+)/;
kill 'STOP', @stopped;
my @taken = mint($pair{beta}, 1000);
is(scalar(@taken), 1000, 'another server takes over when the lease has ended');
kill 'CONT', @stopped;
push @both, @taken;
my $answer = $session->query("SET snowflake.max_wait = '2s'; SELECT snowflake.next_id(g % 3) FROM generate_series(1, 100) g");
push @both, grep { /^\d+$/ } split /\n/, $answer;
push @both, mint($pair{beta}, 1000);
is(twice(@both), 0, 'and no id is there twice when the first goes on');
like($session->{stderr}, qr/this server has no region to mint in|the lease of region 0 has ended/, 'it is told why it may not');
eval { $session->quit };
# Given back, it is free at once.
$pair{beta}->stop;
is(scalar(mint($pair{alpha}, 10)), 10, 'a clean stop hands the region over');

done_testing();
