# Tests that the view clock_history counts each step of the clock exactly once, even while sessions begin and end.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use Snowflake::Ledger;
use Snowflake::Node;
use Test::More;

my $node = Snowflake::Node->create_running('main', clock => -1000);
my $clock = $node->clock;
my $ledger = Snowflake::Ledger->new;

sub steps
{
	return $node->safe_psql('postgres', 'SELECT backward_steps, forward_steps FROM snowflake.clock_history');
}

$node->mint($ledger, 'SELECT snowflake.next_id(1)');
is(steps(), '0|0', 'without a step the counts are 0');

# After each step of the clock a new session mints one id in another shard and ends. The steps of the clock are small,
# because other checks of the clock would detect large steps.
foreach my $round (1 .. 4)
{
	$clock->step(-0.02);
	$node->mint($ledger, "SELECT snowflake.next_id($round + 10)");
}
is(steps(), '4|0', 'four steps back, each with a new session, are counted as four');
is($node->safe_psql('postgres', 'SELECT largest_backward_step_ms BETWEEN 19 AND 21 FROM snowflake.clock_history'),
	't', 'largest_backward_step_ms is the size of one step');

# Six open sessions detect the same step of the clock, but only one session must count the step.
my @sessions = map { $node->session } 1 .. 6;
$ledger->record("session $_", $sessions[ $_ - 1 ]->query_safe('SELECT snowflake.next_id(2)')) foreach 1 .. 6;
foreach my $round (1 .. 3)
{
	$clock->step(-0.02);
	select undef, undef, undef, 1.1;
	$ledger->record("session $_", $sessions[ $_ - 1 ]->query_safe("SELECT snowflake.next_id($_ + 20)")) foreach 1 .. 6;
}
is(steps(), '7|0', 'three steps back that six sessions see are counted as three');

# Tests a clock that steps ahead, and clock steps of less than a millisecond.
$clock->step(+0.5);
$node->mint($ledger, 'SELECT snowflake.next_id(1)');
is(steps(), '7|1', 'a step ahead is counted separately');
foreach my $round (1 .. 4)
{
	$clock->step(-0.0003);
	$node->mint($ledger, 'SELECT snowflake.next_id(1)');
}
is(steps(), '8|1', 'steps of less than a millisecond are counted as one step when they add up to a millisecond');

$clock->step(-0.02);
is(steps(), '9|1', 'a query of clock_history counts a step that no session has seen');

# While four sessions mint ids, clock_history still counts each step of the clock exactly once.
my $gate = $node->session('postgres');    # holds a lock until all writers wait for this lock
$gate->query_safe('SELECT pg_advisory_lock(51)');
my @writers = map { $node->start_writer("SELECT CASE WHEN pg_sleep(0.001) IS NOT NULL THEN snowflake.next_id($_) END FROM (SELECT pg_advisory_lock_shared(51) OFFSET 0) AS gate, generate_series(1, 1500);\n") } 30 .. 33;
$node->poll_query_until('postgres', "SELECT count(*) = 4 FROM pg_stat_activity WHERE application_name = 'writer' AND wait_event = 'advisory'") or die;
$gate->quit;
foreach my $round (1 .. 10)
{
	$clock->step(-0.005);
	select undef, undef, undef, 0.1;
	steps();
}
is(steps(), '19|1', 'ten steps while four sessions mint are counted as ten');
$_->quit foreach @sessions;
$ledger->record($_->{name}, @{ $node->finish_writer($_)->{ids} }) foreach @writers;
$ledger->check(20, 'ids are unique over small steps back');

done_testing();
