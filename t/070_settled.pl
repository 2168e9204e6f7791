# Tests settled_before(), one sentence of doc/cursors.md after the other: what holds it back and for how long, over
# commits that wait, prepared transactions, ends of sessions, crashes and clocks that go back; and what it does not
# cover.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use Snowflake::Node;
use Test::More;

my $node = Snowflake::Node->create_running('main', allows_streaming => 'logical', conf => <<~'CONF');
	max_prepared_transactions = 5
	restart_after_crash = on
	CONF

sub sql { return $node->safe_psql($_[1] // 'postgres', $_[0]); }
sub settled { return sql('SELECT snowflake.settled_before()', @_); }
sub held { return sql(q{SELECT coalesce(held_back_by, 'nothing') FROM snowflake.settled}, @_); }

# Waits until an id is settled: the clock must pass its tick first.
sub comes_to_be_settled
{
	my ($id, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok($node->poll_query_until('postgres', "SELECT snowflake.settled_before() > $id"), $name);
}

# Checks that the result stays below an id, although later ids are otherwise settled.
sub stays_behind
{
	my ($id, $reason, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $later = sql('INSERT INTO t DEFAULT VALUES RETURNING id');
	$node->poll_query_until('postgres', "SELECT clock_timestamp() > snowflake.time_of($later) + interval '2 ms'") or BAIL_OUT('the clock stands still');
	cmp_ok(settled(), '<=', $id, $name);
	return is(held(), $reason, "$name: the view says why");
}
my $OPEN = 'a transaction that minted is open';
my $PREPARED = 'a transaction that minted is prepared';

# Before the first id.
my $first = settled();
like($first, qr/^\d+$/, 'an answer before the first id');
is(sql('SELECT count(*) FROM snowflake.databases'), '0', 'for which no slot is taken');
sql(<<~'SQL');
	CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), n int);
	CREATE ROLE reader;
	GRANT SELECT, INSERT ON t TO PUBLIC;
	SQL
my $id = sql('INSERT INTO t DEFAULT VALUES RETURNING id');
cmp_ok($id, '>=', $first, 'the first id is not below it');
comes_to_be_settled($id, 'a row that is committed comes to be settled');
is(held(), 'nothing', 'and nothing is held back');
like(sql('SET ROLE reader; SELECT snowflake.settled_before(), s.settled_before IS NOT NULL FROM snowflake.settled s'), qr/^\d+\|t$/, 'every role may ask');
like(sql('BEGIN READ ONLY; SELECT snowflake.settled_before()'), qr/^\d+$/, 'in a read-only transaction too');

# An open transaction, while others commit later ids. A consumer that uses the greatest id it saw would skip its rows.
my $writer = $node->session;
my $pid = $writer->query_safe('SELECT pg_backend_pid()');
my $late = $writer->query_safe('BEGIN; INSERT INTO t DEFAULT VALUES RETURNING id');
stays_behind($late, $OPEN, 'behind an open transaction');
cmp_ok(sql('SELECT max(id) FROM t'), '>', $late, 'whose id is below others that are visible');
is(sql('SELECT pid FROM snowflake.settled'), $pid, 'the view names the session');
is(sql("SELECT snowflake.time_of($late) - since BETWEEN '0 ms' AND '200 ms' FROM snowflake.settled"), 't', 'and since when');
$writer->query_safe('SAVEPOINT s; INSERT INTO t DEFAULT VALUES; ROLLBACK TO s; INSERT INTO t DEFAULT VALUES; RELEASE s');
stays_behind($late, $OPEN, 'also after a subtransaction has ended');
my $of_late = $writer->query_safe(<<~'SQL');
	DO $$ BEGIN BEGIN PERFORM snowflake.next_id(9), 1 / 0; EXCEPTION WHEN division_by_zero THEN END; END $$;
	SELECT snowflake.settled_before();
	SQL
cmp_ok($of_late, '<=', $late, 'its own session is told the same');
$writer->query_safe('COMMIT');
comes_to_be_settled($late, 'until it commits');

# Which transactions hold it back.
$writer->query_safe('BEGIN; INSERT INTO t (id) VALUES (1)');
comes_to_be_settled(sql('INSERT INTO t DEFAULT VALUES RETURNING id'), 'a transaction that did not mint holds nothing back');
$writer->query_safe('ROLLBACK');
$late = $writer->query_safe('BEGIN; SELECT snowflake.next_id(5)');
stays_behind($late, $OPEN, 'one that only minted does');
$writer->query_safe('ROLLBACK');
comes_to_be_settled($late, 'until it is rolled back');
$node->create_database('other');
my $other = $node->session('other');
$late = $other->query_safe('BEGIN; SELECT snowflake.next_id(5)');
comes_to_be_settled(sql('INSERT INTO t DEFAULT VALUES RETURNING id'), 'one of another database does not');
is(sql('SELECT snowflake.settled_before()', 'other') <= $late, 1, 'but in its own');
$other->quit;
$writer->query_safe(<<~'SQL');
	CREATE PROCEDURE two() LANGUAGE plpgsql AS $$ BEGIN
		INSERT INTO t (n) VALUES (1); COMMIT; PERFORM pg_advisory_lock(7);
	END $$;
	SQL
sql('SELECT 1');
my $blocker = $node->session;
$blocker->query_safe('SELECT pg_advisory_lock(7)');
my $call = $node->start_writer('CALL two()');
$node->poll_query_until('postgres', 'SELECT count(*) = 1 FROM t WHERE n = 1') or BAIL_OUT('the procedure does not commit');
comes_to_be_settled(sql('SELECT id FROM t WHERE n = 1'), 'a procedure that has committed holds nothing back');
$blocker->query_safe('SELECT pg_advisory_unlock(7)');
$node->finish_writer($call);

# A commit that waits is not visible yet. Readers do not wait for it.
$node->reconfigure(synchronous_standby_names => "'nobody'");
sub soon { return $node->safe_psql('postgres', "SET synchronous_commit = local; $_[0]"); }
my $waiting = $node->start_writer(q{INSERT INTO t (n) VALUES (2) RETURNING id});
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'}) or BAIL_OUT('no commit waits');
my $later = soon('INSERT INTO t DEFAULT VALUES RETURNING id');
$node->poll_query_until('postgres', "SELECT clock_timestamp() > snowflake.time_of($later) + interval '2 ms'") or BAIL_OUT('the clock stands still');
my $while_it_waits = soon('SELECT snowflake.settled_before()');
is(soon('SELECT count(*) FROM t WHERE n = 2'), '0', 'a row whose commit waits for a standby is not visible');
is(soon('SELECT held_back_by FROM snowflake.settled'), $OPEN, 'and holds back');
$node->reconfigure(synchronous_standby_names => "''");
$node->finish_writer($waiting);
cmp_ok($while_it_waits, '<=', sql('SELECT id FROM t WHERE n = 2'), 'what was settled meanwhile was below it');

# The same in commit wait, which ends as soon as the clock has reached the time.
$node->reconfigure('snowflake.clock_error' => "'5ms'", 'snowflake.max_clock_error' => "'10s'");
$waiting = $node->start_writer(q{SET snowflake.commit_wait = on; SET snowflake.max_wait = '1min'; INSERT INTO t (n) VALUES (7)});
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'writer' AND wait_event IN ('Extension', 'SnowflakeClock')})
  or BAIL_OUT('no commit waits for the clock');
$while_it_waits = settled();
is(held() . sql('SELECT count(*) FROM t WHERE n = 7'), $OPEN . 0, 'a commit that waits for the clock holds back');
$node->clock->step(20);
$node->finish_writer($waiting);
cmp_ok($while_it_waits, '<=', sql('SELECT id FROM t WHERE n = 7'), 'what was settled meanwhile was below its id');
$node->reconfigure('snowflake.clock_error' => '-1', 'snowflake.max_clock_error' => "'100ms'");

# A burst ahead of the clock.
my ($ahead) = $node->ids('SELECT (snowflake.next_ids(5, 900000))[900000]');    # 0.9 s
is(sql("SELECT snowflake.settled_before() <= snowflake.min_id(clock_timestamp() + interval '1 ms')"), 't', 'ids ahead of the clock are not settled');
is(held(), 'nothing', 'though nothing holds them back');
comes_to_be_settled($ahead, 'until the clock has come to them');

# Prepared transactions that minted hold it back, over a crash, until any session ends them.
$late = $writer->query_safe("BEGIN; INSERT INTO t (n) VALUES (3) RETURNING id");
$writer->query_safe("PREPARE TRANSACTION 'minted'");
stays_behind($late, $PREPARED, 'behind a prepared transaction');
is(sql('SELECT gid FROM snowflake.settled'), 'minted', 'the view names it');
is(sql("SELECT snowflake.time_of($late) - since BETWEEN '0 ms' AND '200 ms' FROM snowflake.settled"), 't', 'and since when');
is(sql(q{SELECT count(*), bool_and(granted) FROM pg_locks WHERE locktype = 'advisory'}), '2|t', 'it keeps two advisory locks');
$writer->query_safe("BEGIN; INSERT INTO t (id, n) VALUES (2, 4); PREPARE TRANSACTION 'explicit'");
$writer->query_safe("BEGIN; INSERT INTO t (n) VALUES (5); PREPARE TRANSACTION 'later'");
stays_behind($late, $PREPARED, 'the first of them');
my $before = settled();
$writer->quit;
$node->stop('immediate');
$node->start;
is(sql('SELECT gid, held_back_by FROM snowflake.settled'), "minted|$PREPARED", 'also after a crash, before the first id');
cmp_ok(settled(), '>=', $before, 'the answer has not gone back');
stays_behind($late, $PREPARED, 'and while it mints again');
sql("COMMIT PREPARED 'minted'");
is(sql('SELECT gid FROM snowflake.settled'), 'later', 'then the next one');
cmp_ok(settled(), '>', $late, 'until it is committed');
sql("ROLLBACK PREPARED 'later'");
comes_to_be_settled(sql('INSERT INTO t DEFAULT VALUES RETURNING id'), 'or rolled back; one that did not mint holds nothing back');
is(sql('SELECT gid FROM pg_prepared_xacts'), 'explicit', 'although it is there');
sql("ROLLBACK PREPARED 'explicit'");
is(sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), '0', 'no lock is left');

# Sessions that are terminated or killed.
$writer = $node->session;
$pid = $writer->query_safe('SELECT pg_backend_pid()');
$late = $writer->query_safe('BEGIN; INSERT INTO t DEFAULT VALUES RETURNING id');
stays_behind($late, $OPEN, 'a session that will be terminated');
sql("SELECT pg_terminate_backend($pid, 60000)");
comes_to_be_settled($late, 'holds nothing back when it is gone');
eval { $writer->quit };
$writer = $node->session;
$pid = $writer->query_safe('SELECT pg_backend_pid()');
$late = $writer->query_safe('BEGIN; INSERT INTO t DEFAULT VALUES RETURNING id');
$before = settled();
$node->kill_backend($pid);
cmp_ok(settled(), '>=', $before, 'nothing goes back where one is killed');
comes_to_be_settled($late, 'and its transaction holds nothing back');
eval { $writer->quit };

# Snapshots.
foreach my $level ('REPEATABLE READ', 'SERIALIZABLE')
{
	$node->refuses("BEGIN ISOLATION LEVEL $level; SELECT snowflake.settled_before()",
		{
			sqlstate => '25001',
			message => 'cannot execute settled_before\(\) in a transaction that reads in one snapshot',
			detail => "The transaction is $level: all its queries read one snapshot, which is older than the answer would be\\.",
			hint => 'Call it in a READ COMMITTED transaction, before the one that reads.' },
		"$level: an error");
	is(sql("BEGIN ISOLATION LEVEL $level; SELECT * FROM snowflake.settled"), '|the transaction that asks reads in one snapshot|||', "$level: the view says so");
}
# One statement that calls and reads: its snapshot is older than the result.
$writer = $node->session;
$writer->query_safe('SELECT pg_advisory_lock(8)');
$late = $writer->query_safe('BEGIN; INSERT INTO t DEFAULT VALUES RETURNING id');
my $both = $node->start_writer(
	"SELECT CASE WHEN snowflake.settled_before() > $late AND NOT EXISTS (SELECT FROM t WHERE id = $late) THEN 4711 END FROM (SELECT pg_advisory_lock(8) OFFSET 0) AS waited");
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'advisory'}) or BAIL_OUT('nobody waits');
$writer->query_safe('COMMIT');
comes_to_be_settled($late, 'committed while another statement runs');
$writer->query_safe('SELECT pg_advisory_unlock(8)');
is_deeply($node->finish_writer($both)->{ids}, [4711], 'that one is told so, and does not see the row: asking and reading are two statements');

# Not covered: ids of one transaction that another inserts, and ids that were not minted here.
my ($reserved) = $node->ids('SELECT unnest(snowflake.next_ids(5, 1))');
comes_to_be_settled($reserved, 'ids that were fetched and are inserted later: settled before they are');
is(sql("INSERT INTO t (id) VALUES ($reserved), (snowflake.make_id('2026-01-01', 5, 0)) RETURNING id < snowflake.settled_before()"), "t\nt", 'as are ids of make_id()');

# The clock and the mark: without ids the mark is not extended, and the result stays below it.
$before = settled();
$node->clock->step(-0.05);
cmp_ok(settled(), '>=', $before, 'a clock that goes back takes nothing back');
$node->clock->step(20);
my $mark = $node->mark;
cmp_ok(settled(), '<=', sql("SELECT snowflake.min_id(to_timestamp($mark / 1000.0))"), 'a database that mints nothing is settled up to its mark');
cmp_ok(settled(), '>', sql('SELECT max(id) FROM t'), 'above all that is there');
is(held(), 'nothing', 'which holds nothing back');
$before = settled();
$node->stop('immediate');
$node->clock->step(-15);
$node->start;
cmp_ok(settled(), '>=', $before, 'after a crash, with the clock back: not less');
$node->safe_psql('postgres', "SET snowflake.max_wait = '1min'; INSERT INTO t (n) VALUES (6)");
cmp_ok(sql('SELECT id FROM t WHERE n = 6'), '>=', $before, 'and no id below what was settled');

# A mark from the future has no effect on it: the result follows the clock.
$node->clock->step(15);
sql('SELECT snowflake.next_id(5)');
$before = settled();
$node->stop('fast');
$node->clock->step(-600);
$node->start;
cmp_ok(settled(), '<', $before, 'a mark far ahead of the clock: the answer is of the clock');
like($node->error_of('SELECT snowflake.next_id(5)'), qr/55000/, 'and nobody mints');
$node->clock->step(600);
ok($node->poll_query_until('postgres', "SELECT snowflake.settled_before() >= $before"), 'until the clock is there');

# While the mark cannot be read, and no id was minted since the start.
$node->restart;
my $dropper = $node->session;
$dropper->query_safe('BEGIN; SET client_min_messages = error; DROP EXTENSION snowflake CASCADE');
is(sql("SET lock_timeout = '60s'; SELECT snowflake.settled_before() IS NULL"), 't', 'no answer while the extension is being dropped');
is(sql("SET lock_timeout = '60s'; SELECT held_back_by FROM snowflake.settled()"), 'the high-water mark is locked, lost or not durable yet', 'and why');
$dropper->query_safe('ROLLBACK');
like(settled(), qr/^\d+$/, 'until that is rolled back');
$dropper->quit;

# Replaced while the server runs.
$before = settled();
sql('DROP EXTENSION snowflake CASCADE; CREATE EXTENSION snowflake; ALTER TABLE t ALTER id SET DEFAULT snowflake.next_id(5)');
cmp_ok(settled(), '>=', $before, 'an extension that is created again');
cmp_ok(sql('INSERT INTO t DEFAULT VALUES RETURNING id'), '>=', $before, 'mints nothing below');
my $holder = $node->session;
$holder->query_safe('BEGIN; LOCK TABLE snowflake.health IN ACCESS EXCLUSIVE MODE');
like(settled(), qr/^\d+$/, 'locks on its relations are not waited for');
$holder->quit;

done_testing();
