# Tests calls that mint ids after the clock was stepped back. Depending on the size of the clock step, calls return at
# once, wait, or fail. Tests which events end a call that waits for the clock.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Ledger;
use Snowflake::Node;
use Test::More;

# The layout 41/13/6 has only 64 ids per shard and time unit (tick), so that the test can mint all of them.
my $node = Snowflake::Node->create_running('main', conf => "snowflake.layout = '41/13/6'\n");

my $ledger = Snowflake::Ledger->new(sequence_bits => 6);
my $clock = $node->clock;

sub mint_of
{
	$node->mint($ledger, "SELECT snowflake.next_id($_)") foreach @_;
	return;
}

sub stats
{
	my ($columns, $shard) = @_;
	return $node->safe_psql('postgres',
		"SELECT $columns FROM snowflake.shard_stats WHERE shard = $shard");
}

sub not_ahead_by
{
	my ($lead, $id, $name) = @_;
	is( $node->safe_psql('postgres', <<~"SQL"), '0', $name);
			SELECT count(*) FROM generate_series(1, 2000)
			 WHERE snowflake.time_of($id) > clock_timestamp() + interval '$lead'
			SQL
	return;
}

mint_of(1);
$clock->step(-0.09);
mint_of(1);
is(stats('waits, refusals', 1), '0|0', 'after a step back of 90 ms no call waits or fails');
is( $node->safe_psql('postgres', <<~'SQL'), '1|t', 'clock_history counts a step back of 90 ms');
	SELECT backward_steps, largest_backward_step_ms BETWEEN 80 AND 100
	  FROM snowflake.clock_history
	SQL
not_ahead_by('100 ms', 'snowflake.next_id(1)', 'after a step back of 90 ms no id is further ahead of the clock than max_lead');

mint_of(2);
$clock->step(-1.9);
mint_of(2);
is(stats("waits, refusals, wait_time > 0", 2), '1|0|t', 'after a step back of 1.9 s a call waits');
not_ahead_by('100 ms', 'snowflake.next_id(2)', 'after a step back of 1.9 s no id is further ahead of the clock than max_lead');

# If the clock steps back by ten minutes, calls that mint ids fail, because "snowflake.max_wait" is two seconds.
mint_of(3);
my $mark = $node->mark;
$clock->step(-600);
my %behind = (
	sqlstate => '55000',
	message => 'the clock is behind the ids of shard 3',
	detail => 'The next id would have the time \S+ \S+.*, but the clock shows \S+ \S+.*\. With "snowflake.max_lead" 100 ms,'
	  . ' the call would wait \S+ (?:s|min)\. "snowflake.max_wait" is 2000 ms',
	hint => 'Minting resumes automatically');
$node->refuses('SELECT snowflake.next_id(3)', \%behind, 'after a step back of ten minutes next_id() fails');
$node->refuses('SELECT snowflake.next_ids(3, 10)', \%behind, 'after a step back of ten minutes next_ids() fails');
is(stats('waits, refusals', 3), '0|2', 'shard_stats counts both failed calls, and no wait');
is($node->mark, $mark, 'failed calls do not raise the mark');
$clock->step(+600);
mint_of(3);
pass('the shard mints again when the clock has caught up');

mint_of(5);
$clock->step(-1.9);
$node->refuses(
	'SET snowflake.max_wait = 0; SELECT snowflake.next_id(5)',
	{ %behind, message => 'shard 5', detail => '"snowflake.max_wait" is 0 ms' },
	'with max_wait = 0 a call fails instead of waiting');
$clock->step(+1.9);
is($node->safe_psql('postgres', 'SET snowflake.max_wait = 0; SELECT snowflake.next_id(5) > 0'),
	't', 'with max_wait = 0 a call succeeds if the clock is right');

my $batch = $node->start_writer('SELECT count(snowflake.next_ids(6, 1000000))');
$node->poll_query_until('postgres',
	'SELECT waits > 0 FROM snowflake.shard_stats WHERE shard = 6');
$ledger->record('single calls',
	$node->ids("SET snowflake.max_wait = 0; SELECT snowflake.next_id(6) FROM generate_series(1, 200)"));
is($node->safe_psql('postgres',
		"SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'writer'"),
	't', 'next_id() returns ids while a batch of the same shard still waits');
like($node->finish_writer($batch)->{errors}, qr/canceling statement/, 'a batch that waits for the clock can be cancelled');

$node->reconfigure('snowflake.max_lead' => "'0'");
not_ahead_by('0', 'snowflake.next_id(10)', 'max_lead = 0: no id is ahead of the clock');
not_ahead_by('0', 'snowflake.next_id(10 + generate_series % 2)', 'max_lead = 0: no id is ahead of the clock if calls alternate between two shards');
is( $node->safe_psql('postgres', <<~'SQL'), 't', 'max_lead = 0: the last id of a batch is not ahead of the clock');
	SELECT snowflake.time_of((snowflake.next_ids(12, 5000))[5000]) <= clock_timestamp()
	SQL
is($node->safe_psql('postgres', 'SELECT sum(borrowed_ticks) FROM snowflake.shard_stats WHERE shard BETWEEN 10 AND 12'),
	'0', 'max_lead = 0: no tick was borrowed');
mint_of(13);
$clock->step(-0.5);
not_ahead_by('0', 'snowflake.next_id(13)', 'max_lead = 0: no id is ahead of the clock after a step back');
$node->reconfigure('snowflake.max_lead' => "'100ms'");

# A call that waits for the clock can be cancelled, and its session can mint ids afterwards.
my $wait_event = $node->pg_version >= 17 ? 'Extension|SnowflakeClock' : 'Extension|Extension';
my $waiters = "FROM pg_stat_activity WHERE application_name = 'writer'";

sub start_waiting
{
	my ($before) = @_;
	my $waiter = $node->start_writer(<<~"SQL");
		\\set VERBOSITY verbose
		\\unset ON_ERROR_STOP
		SET snowflake.max_wait = '1h';
		$before
		SELECT snowflake.next_id(20);
		SELECT 4711;
		SQL
	return $waiter;
}

sub wait_for_waiter
{
	$node->poll_query_until('postgres', "SELECT wait_event_type || '|' || wait_event $waiters",
		$wait_event)
	  or BAIL_OUT('nobody waits for the clock');
	return;
}

mint_of(20);
$clock->step(-100);

my $end = $node->finish_writer(start_waiting("SET statement_timeout = '200ms';"));
like($end->{errors}, qr/57014: canceling statement due to statement timeout/, 'statement_timeout ends the wait of a call');
is_deeply($end->{ids}, [4711], 'the session continues after statement_timeout ended the wait');

my $waiter = start_waiting('');
wait_for_waiter();
pass("pg_stat_activity shows $wait_event for a call that waits for the clock");
$node->safe_psql('postgres', "SELECT pg_cancel_backend(pid) $waiters");
$end = $node->finish_writer($waiter);
like($end->{errors}, qr/57014: canceling statement due to user request/, 'pg_cancel_backend() ends the wait of a call');
is_deeply($end->{ids}, [4711], 'the session continues after pg_cancel_backend() ended the wait');

$waiter = start_waiting('');
wait_for_waiter();
$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) $waiters");
$end = $node->finish_writer($waiter);
like($end->{errors}, qr/57P01: terminating connection/, 'pg_terminate_backend() ends the wait of a call');

$waiter = start_waiting('');
wait_for_waiter();
$clock->step(+100);
$end = $node->finish_writer($waiter);
is($end->{errors}, '', 'a waiting call succeeds after the clock is corrected');
is(scalar(@{ $end->{ids} }), 2, 'a waiting call returns an id after the clock is corrected');
$ledger->record('patient', $end->{ids}[0]);
mint_of(20);

$clock->step(-100);
$waiter = start_waiting('');
wait_for_waiter();
my ($pid) = $node->ids("SELECT pid $waiters");
$node->kill9;
$end = $node->finish_writer($waiter);
is_deeply($end->{ids}, [], 'a waiting call returns no id if the postmaster dies');
my $tries = 100 * $PostgreSQL::Test::Utils::timeout_default;
select undef, undef, undef, 0.01 while kill(0, $pid) && --$tries;
ok($tries, 'a waiting backend ends if the postmaster dies');

# With the default "snowflake.max_lead", a server that starts with its clock behind returns errors until the clock has
# caught up.
$ledger->new_server_run;
$node->start;
$node->refuses('SELECT snowflake.next_id(20)', { sqlstate => '55000', message => 'clock is behind' },
	'a server that starts with its clock behind refuses a shard that has minted');
$node->refuses('SELECT snowflake.next_id(7777)', { sqlstate => '55000', message => 'clock is behind' },
	'a server that starts with its clock behind refuses a shard that has never minted');
$clock->step(+100);
mint_of(1 .. 20, 7777);
$ledger->check(220, 'ids are unique over all these steps of the clock');

done_testing();
