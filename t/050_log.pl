# Tests the log messages in the table of doc/monitoring.md. The log must contain exactly one message for each event.
# When a reported fault has ended, the log must contain a message about its end.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use Snowflake::Ledger;
use Snowflake::Node;
use Test::More;

my ($node, $ledger, $read);

# Starts a server, and stores the length of its log.
sub begin
{
	my ($name, %params) = @_;
	$node->stop if defined $node;
	$node = Snowflake::Node->create_running($name, %params);
	$ledger = Snowflake::Ledger->new;
	$read = length $node->log_content;
	return;
}

# Returns the lines that the extension has written to the log since the last call of news().
sub news
{
	my $log = $node->log_content;
	my $new = substr $log, $read;
	$read = length $log;
	$new =~ s/^.*LOG:  the first ids since the server start .*\n(?:.*(?:DETAIL|HINT):  .*\n)*//mg;    # t/017 tests this message
	return join "\n", grep { /LOG:  (?:snowflake|the clock|a call waited|the ids of layout)|ERROR:|DETAIL:|HINT:|STATEMENT:|CONTEXT:/ }
	  split /\n/, $new;
}

sub count_of
{
	my ($pattern) = @_;
	my $log = $node->log_content;
	return scalar(() = $log =~ /$pattern/g);
}

# Checks that the log has a new message with a detail and a hint, but without a STATEMENT line.
sub says
{
	my ($message, $detail, $hint, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $news = news();
	my $pattern = "LOG:  $message\n.*DETAIL:  $detail";
	$pattern .= "\n.*HINT:  $hint" if defined $hint;
	like($news, qr/$pattern/, $name);
	unlike($news, qr/LOG:  (?:$message)(?:(?!LOG:|ERROR:).)*STATEMENT/s, "$name, without the statement of the session");
	return $news;
}

sub mint
{
	$node->mint($ledger, "SELECT snowflake.next_id($_)") foreach @_;
	return;
}

sub refused
{
	my ($sql) = @_;
	like($node->error_of($sql), qr/ERROR/, "this call fails: $sql");
	return;
}

# Tests a clock that steps back by more than "snowflake.max_lead", and later catches up.
begin('back', conf => "snowflake.clock_error = 5\n");
my $clock = $node->clock;
mint(1, 2);
is(news(), '', 'with a right clock the log has no message');
$clock->step(-0.09);
mint(1);
is(news(), '', 'after a step back of 90 ms the log has no message');
$clock->step(-1.5);
mint(2);
says('the clock was stepped back by 1\d\d\d ms',
	'This step of the clock is longer than "snowflake.max_lead" \(100 ms\)\. .* Number of clock steps back since the server start: 2\. The clock shows \d.*\.',
	'Configure the time synchronization to slew the clock, not to step it\.',
	'the log reports a step back of 1.5 s');
is(count_of('LOG:  the clock was stepped back'), 1, 'the log reports the step back once');
$node->poll_query_until('postgres', 'SELECT snowflake.next_id(1) > 0 AND (SELECT covered_until IS NOT NULL FROM snowflake.health)');
select undef, undef, undef, 1.7;
mint(1);
says('the clock has caught up after it was stepped back', 'The step of the clock was detected \d+ ms ago\. The clock shows \d.*\.', undef,
	'the log reports that the clock has caught up');

# If the clock steps back twice within a minute, the log shows only the first step.
$clock->step(-300);
refused('SELECT snowflake.next_id(1)');
says('snowflake refuses calls in database "postgres": the clock is behind the ids of a shard',
	'The clock shows \d.*\. Since the server started or the clock was accepted, the clock was stepped by -301\d\d\d ms in all\. The high-water mark is \d.*\.',
	'Check the time synchronization\. .*',
	'the log reports the first refusal');
refused('SELECT snowflake.next_id(1)') foreach 1 .. 3;
is(news() =~ s/.*(?:ERROR|DETAIL|HINT|STATEMENT).*\n?//gr, '', 'the log reports neither later refusals nor a second step within a minute');
is($node->safe_psql('postgres', 'SELECT backward_steps FROM snowflake.clock_history'), '3', 'clock_history counts all steps back');
is($node->safe_psql('postgres', "SELECT refusals, since IS NOT NULL FROM snowflake.refusals WHERE cause = 'clock_behind'"),
	'4|t', 'the view refusals counts the refused calls');
$clock->step(+300);
mint(1);
is($node->safe_psql('postgres', "SELECT since IS NOT NULL FROM snowflake.refusals WHERE cause = 'clock_behind'"),
	't', 'one successful call does not end the period of refusals');
select undef, undef, undef, 10.5;
mint(1);
says('snowflake mints ids again in database "postgres"; reason of the earlier refusals: the clock is behind the ids of a shard',
	'4 calls were refused in the last [1-9]\d+\.\d s\.', undef, 'the log reports the end of refusals after ten seconds without one');
is($node->safe_psql('postgres', "SELECT refusals, since FROM snowflake.refusals WHERE cause = 'clock_behind'"), '4|', 'the view refusals shows that the period has ended');

# If the clock steps back by more than 100 ms, but less than "snowflake.max_lead", the step is logged at most once a
# minute.
begin('within', conf => "snowflake.clock_error = 5\nsnowflake.max_lead = 1s\n");
$clock = $node->clock;
mint(1);
$clock->step(-0.5);
mint(1);
says('the clock was stepped back by (?:4\d\d|50\d) ms', 'This step of the clock is not longer than "snowflake.max_lead" \(1000 ms\)\. .* Number of clock steps back since the server start: 1\. The clock shows \d.*\.',
	'Configure the time synchronization to slew the clock, not to step it\.', 'the log reports a step back of 0.5 s within max_lead');
$clock->step(-0.2);
mint(1);
is(news(), '', 'the log does not report a second step within a minute');
is($node->safe_psql('postgres', 'SELECT backward_steps FROM snowflake.clock_history'), '2', 'clock_history counts both steps');

# Tests a clock that jumps ahead by more than "snowflake.max_forward_jump".
begin('ahead', conf => "snowflake.clock_error = 5\n", clock => -100000);
$clock = $node->clock;
mint(1);
$clock->step(+1800);
mint(1);
says('the clock was stepped ahead by 30\.0 min',
	'New ids follow the clock, because the step is less than "snowflake.max_forward_jump" \(3600 s\)\. If the clock is stepped back later, .* Number of clock steps ahead since the server start: 1\. The clock shows .*\.',
	'If the clock was correct before the step, check the time synchronization\.', 'the log reports a step ahead within max_forward_jump');
is($node->safe_psql('postgres', 'SELECT forward_steps, largest_forward_step_ms BETWEEN 1799000 AND 1801000 FROM snowflake.clock_history'),
	'1|t', 'clock_history counts the step ahead');
$clock->step(+7200);
refused('SELECT snowflake.next_id(1)') foreach 1 .. 2;
my $news = says('the clock jumped ahead by 150\.0 min',
	'The jump is (?:89|90)\d{5} ms long, but "snowflake.max_forward_jump" is 3600 s\. .*',
	'If the clock is wrong, correct the clock\. If the clock is right, run SELECT snowflake\.accept_clock\(\)\.', 'the log reports a jump ahead');
like($news, qr/LOG:  snowflake refuses calls in database "postgres": the clock jumped ahead\n/, 'the log reports the refusals after the jump ahead');
is($node->safe_psql('postgres', "SELECT refusals FROM snowflake.refusals WHERE cause = 'clock_jumped'"), '2', 'refusals after the jump ahead are counted');
$node->safe_psql('postgres', 'SELECT snowflake.reset_stats()');
refused('SELECT snowflake.next_id(1)');
is($node->safe_psql('postgres', "SELECT refusals FROM snowflake.refusals WHERE cause = 'clock_jumped'"), '1', 'refusals are counted from 0 after reset_stats()');
$clock->step(-7200);
select undef, undef, undef, 1.2;
mint(1);
$news = says('the clock is no longer ahead after its jump', 'Since the server started or the clock was accepted, the clock was stepped by 1(?:79|80)\d{4} ms in all\. The jump ahead was detected \d+ ms ago\.',
	undef, 'the log reports that the jump was corrected');
like($news, qr/LOG:  snowflake mints ids again in database "postgres"; reason of the earlier refusals: the clock jumped ahead\n.*DETAIL:  3 calls were refused in the last \d+ ms\./,
	'the log reports the end of the refusals and their number, also those before reset_stats()');
unlike($news, qr/stepped back/, 'the log does not report the correction as a step back');
$clock->step(+7200);
refused('SELECT snowflake.next_id(1)');
$node->safe_psql('postgres', 'SELECT snowflake.accept_clock()');
like($node->log_content, qr/LOG:  snowflake accepts that the clock moved by (?:89|90)\d{5} ms/, 'the log reports that the jump was accepted');
mint(1);

# Tests log messages about a clock before the epoch, in the last year of the layout, and after the end of the layout.
begin('ends', conf => "snowflake.clock_error = 5\n");
$clock = $node->clock;
mint(1);
$clock->set(1_704_067_200 - time);
refused('SELECT snowflake.next_id(1)');
says('snowflake refuses calls in database "postgres": the clock is before the epoch of the ids', 'The clock shows 2024-01-01 .*', 'Correct the clock\. .*',
	'the log reports refusals because the clock is before the epoch');
is($node->safe_psql('postgres', 'SELECT minting, reason FROM snowflake.health'), 'f|clock before the epoch of the ids', 'health shows that the clock is before the epoch');
$node->stop;
$clock->set(2_829_600_000 - time);    # 2059-09-01
$node->start;
news();
mint(1) foreach 1 .. 3;
$news = says('the ids of layout 41/5\+8/10 run out in 6\d\.\d days', 'Minting stops at 2059-11-04 .*\.',
	'Move the database to a layout with more time bits or a later epoch\.', 'the log reports that the layout ends in less than a year');
is(count_of('LOG:  the ids of layout'), 1, 'the log reports the end of the layout once');
$node->stop;
$node->append_conf('postgresql.conf', "snowflake.max_lead = 60s\n");
$clock->set(2_835_201_217 - time);    # about ten seconds before the layout ends at 2059-11-04 19:53:47.776
$node->start;
$node->refuses('SELECT count(*) FROM (SELECT snowflake.next_ids(1, 1000000) FROM generate_series(1, 20)) AS i', { sqlstate => '2200H',
	message => 'the id layout has no time values left', detail => 'Ids of layout 41/5\+8/10', hint => 'Move the database' }, 'ids ahead of the clock cannot be after the end of the layout');
$node->stop;
$clock->set(2_840_140_800 - time);    # 2060-01-01
$node->start;
refused('SELECT snowflake.next_id(1)');
says('snowflake refuses calls in database "postgres": the id layout has no time values left', '.*', 'Move the database .*', 'the log reports refusals because the layout is exhausted');
is($node->safe_psql('postgres', 'SELECT minting, reason FROM snowflake.health'), 'f|id layout has no time values left', 'health shows that the layout is exhausted');

# Tests log messages about an unsynchronized clock, a slow flush of the high-water mark, and calls that fail, for
# example in read-only transactions.
begin('others', conf => <<~'CONF');
	snowflake.clock_error = 200
	snowflake.owned_shards = '0-9'
	fsync = on
	commit_delay = 100000
	commit_siblings = 0
	CONF
mint(1);
$news = says('snowflake mints ids although the clock is not synchronized', '"snowflake.clock_error" is 200 ms\. "snowflake.max_clock_error" is 100 ms\.',
	'Check the time synchronization, or set "snowflake.clock_error" to the maximum error of the clock.', 'the log reports that the clock is not synchronized');
like($news, qr/LOG:  a call waited \d{3,} ms for the high-water mark to be flushed\n.*DETAIL:  .* 1000 ms \("snowflake.reserve"\).*\n.*HINT:  Check the disk/,
	'the log reports a flush of more than 100 ms');
ok($node->safe_psql('postgres', 'SELECT longest_mark_flush >= 100 AND mark_flushes >= 1 FROM snowflake.database_stats') eq 't', 'database_stats counts the slow flush');
$node->reconfigure('snowflake.clock_error' => "'20ms'");
select undef, undef, undef, 1.2;
mint(1);
says('the clock is synchronized again', 'The maximum error of the clock is 20\.000 ms\. The clock was found unsynchronized \S+ m?s ago\.', undef,
	'the log reports that the clock is synchronized again');
refused('SELECT snowflake.next_id(77)');
says('snowflake refuses calls in database "postgres": this server does not own the requested shard', '.*', 'Insert on the server that owns the shard\.',
	'the log reports the first refusal of a shard that the server does not own');
refused('BEGIN READ ONLY; SELECT snowflake.next_id(1)');
says('snowflake refuses calls in database "postgres": the transaction or the server is read-only', '.*', 'Use a read-write transaction\.',
	'the log reports the first refusal in a read-only transaction');
refused('SELECT snowflake.next_id(1, after => snowflake.make_id(now() + interval $$1 day$$, 1, 0))');
says('snowflake refuses calls in database "postgres": an id that was passed to a call is too far ahead of the clock', '.*', 'Compare the clocks of the servers\.',
	'the log reports the first refusal of an id too far ahead of the clock');
refused('SET snowflake.max_wait = 0; SELECT snowflake.next_ids(1, 400000)');
says('snowflake refuses calls in database "postgres": calls request more ids from a shard than the shard can mint', '.*', 'Spread the load .*',
	'the log reports the first refusal because a shard has no ids left');
refused('SET snowflake.max_wait = 0; SET snowflake.commit_wait = on; SELECT snowflake.next_id(2)');
says('snowflake refuses calls in database "postgres": the clock is not synchronized, or a commit would wait too long', '.*', '(?:Check the time synchronization,|Raise "snowflake.max_wait"\.) .*',
	'the log reports the first refused commit');

# If calls of a session failed, its next id writes a log message that the calls succeed again.
begin('again', conf => "snowflake.clock_error = 5\nsnowflake.reserve = 60s\n");
$clock = $node->clock;
mint(1);
my $session = $node->session;
$session->query_safe('SELECT snowflake.next_id(1)');
news();
$clock->set(1_704_067_200 - time);
$session->query_safe('DO $$ BEGIN PERFORM snowflake.next_id(1); EXCEPTION WHEN object_not_in_prerequisite_state THEN NULL; END $$');
like(news(), qr/snowflake refuses calls in database "postgres": the clock is before the epoch of the ids/, 'the log reports a refusal in an open session');
$clock->set(0);
$session->query_safe('SELECT snowflake.next_id(1)');
says('snowflake mints ids again in database "postgres"; reason of the earlier refusals: the clock is before the epoch of the ids', '1 call was refused in the last .*', undef,
	'the next id of the session logs the end of the refusals');
$session->query_safe('SELECT snowflake.next_id(1)');
is(news(), '', 'the end of the refusals is logged once');
$session->quit;

# Tests a high-water mark ahead of the clock, an invalid stored layout (seal), and a lost high-water mark.
begin('mark', conf => "snowflake.clock_error = 5\n");
mint(1);
my $mark = $node->mark;
$node->safe_psql('postgres', "SELECT setval('snowflake.high_water', $mark + 3600000)");
refused('SELECT snowflake.next_id(1)');
says('snowflake refuses calls in database "postgres": the clock is behind the high-water mark \(sequence snowflake.high_water\)', '.*', 'Check the time synchronization\. .*set_mark.*',
	'the log reports refusals because the mark is ahead of the clock');
$node->safe_psql('postgres', "SELECT setval('snowflake.high_water', $mark)");
mint(1);
says('snowflake mints ids again in database "postgres"; reason of the earlier refusals: the clock is behind the high-water mark \(sequence snowflake.high_water\)', '1 call was refused in the last .*', undef,
	'the log reports the end of refusals after the mark was corrected');
$node->safe_psql('postgres', q{SELECT setval('snowflake.seal', 17)});
select undef, undef, undef, 1.2;
refused('SELECT snowflake.next_id(1)');
says('snowflake refuses calls in database "postgres": the id layout of this database is lost, or does not fit the dump, the region or the lease server', '.*', 'Restore the database again\. .*',
	'the log reports refusals because of a wrong seal');
$node->restart;
# A high-water mark is reported as lost if its sequence was replaced, but not if its value was lowered.
$node->safe_psql('postgres', <<~'SQL');
	SELECT setval('snowflake.seal', last_value) FROM snowflake.seal_local;
	BEGIN;
	ALTER EXTENSION snowflake DROP SEQUENCE snowflake.high_water;
	DROP SEQUENCE snowflake.high_water;
	CREATE SEQUENCE snowflake.high_water AS bigint MINVALUE 0 START 0;
	ALTER EXTENSION snowflake ADD SEQUENCE snowflake.high_water;
	COMMIT;
	SQL
refused('SELECT snowflake.next_id(1)');
says('snowflake refuses calls in database "postgres": the high-water mark \(sequence snowflake.high_water\) is lost', '.*', 'Run SELECT snowflake.set_mark\(\.\.\.\) .*', 'the log reports refusals because the mark is lost');

done_testing();
