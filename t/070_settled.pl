# Tests each sentence of doc/cursors.md about settled_before(). All transactions that minted an id below the result of
# settled_before() must have ended.

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

# Waits until an id is below the result of settled_before().
sub comes_to_be_settled
{
	my ($id, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok($node->poll_query_until('postgres', "SELECT snowflake.settled_before() > $id"), $name);
}

# Checks that the result of settled_before() does not exceed the id of an open transaction.
sub stays_behind
{
	my ($id, $reason, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $later = sql('INSERT INTO t DEFAULT VALUES RETURNING id');
	$node->poll_query_until('postgres', "SELECT clock_timestamp() > snowflake.time_of($later) + interval '2 ms'") or BAIL_OUT('the clock stands still');
	cmp_ok(settled(), '<=', $id, $name);
	return is(held(), $reason, "$name: the view settled shows the reason");
}
my $OPEN = 'an open transaction has minted ids';
my $PREPARED = 'a prepared transaction has minted ids';

my $first = settled();
like($first, qr/^\d+$/, 'settled_before() returns a number before the first id');
is(sql('SELECT count(*) FROM snowflake.databases'), '0', 'settled_before() takes no slot for databases');
sql(<<~'SQL');
	CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), n int);
	CREATE ROLE reader;
	GRANT SELECT, INSERT ON t TO PUBLIC;
	SQL
my $id = sql('INSERT INTO t DEFAULT VALUES RETURNING id');
cmp_ok($id, '>=', $first, 'the first id is not below an earlier result');
comes_to_be_settled($id, 'the id of a committed row becomes settled');
is(held(), 'nothing', 'the view settled shows that nothing is held back');
like(sql('SET ROLE reader; SELECT snowflake.settled_before(), s.settled_before IS NOT NULL FROM snowflake.settled s'), qr/^\d+\|t$/, 'every role may call settled_before()');
like(sql('BEGIN READ ONLY; SELECT snowflake.settled_before()'), qr/^\d+$/, 'settled_before() works in a read-only transaction');

# One transaction stays open while other transactions commit later ids. A reader that continues after the greatest
# visible id would skip the rows of the open transaction.
my $writer = $node->session;
my $pid = $writer->query_safe('SELECT pg_backend_pid()');
my $late = $writer->query_safe('BEGIN; INSERT INTO t DEFAULT VALUES RETURNING id');
stays_behind($late, $OPEN, 'the result stays below the id of an open transaction');
cmp_ok(sql('SELECT max(id) FROM t'), '>', $late, 'an id above that of the open transaction is visible');
is(sql('SELECT pid FROM snowflake.settled'), $pid, 'the view settled shows the process of the open transaction');
is(sql("SELECT snowflake.time_of($late) - since BETWEEN '0 ms' AND '200 ms' FROM snowflake.settled"), 't', 'the view settled shows since when the transaction is open');
$writer->query_safe('SAVEPOINT s; INSERT INTO t DEFAULT VALUES; ROLLBACK TO s; INSERT INTO t DEFAULT VALUES; RELEASE s');
stays_behind($late, $OPEN, 'the result stays below the id after a subtransaction has ended');
my $of_late = $writer->query_safe(<<~'SQL');
	DO $$ BEGIN BEGIN PERFORM snowflake.next_id(9), 1 / 0; EXCEPTION WHEN division_by_zero THEN END; END $$;
	SELECT snowflake.settled_before();
	SQL
cmp_ok($of_late, '<=', $late, 'the result stays below the id in the session of the open transaction');
$writer->query_safe('COMMIT');
comes_to_be_settled($late, 'the id becomes settled when the transaction commits');

$writer->query_safe('BEGIN; INSERT INTO t (id) VALUES (1)');
comes_to_be_settled(sql('INSERT INTO t DEFAULT VALUES RETURNING id'), 'a transaction that did not mint holds nothing back');
$writer->query_safe('ROLLBACK');
$late = $writer->query_safe('BEGIN; SELECT snowflake.next_id(5)');
stays_behind($late, $OPEN, 'a transaction that minted without inserting holds the result back');
$writer->query_safe('ROLLBACK');
comes_to_be_settled($late, 'a transaction that minted holds nothing back when it is rolled back');
$node->create_database('other');
my $other = $node->session('other');
$late = $other->query_safe('BEGIN; SELECT snowflake.next_id(5)');
comes_to_be_settled(sql('INSERT INTO t DEFAULT VALUES RETURNING id'), 'a transaction of another database holds nothing back');
is(sql('SELECT snowflake.settled_before()', 'other') <= $late, 1, 'a transaction of another database holds the result back there');
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

# The result of settled_before() stays below the ids of a commit that waits for a standby.
$node->reconfigure(synchronous_standby_names => "'nobody'");
sub soon { return $node->safe_psql('postgres', "SET synchronous_commit = local; $_[0]"); }
my $waiting = $node->start_writer(q{INSERT INTO t (n) VALUES (2) RETURNING id});
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'writer' AND wait_event = 'SyncRep'})
  or BAIL_OUT('no commit waits');
my $later = soon('INSERT INTO t DEFAULT VALUES RETURNING id');
$node->poll_query_until('postgres', "SELECT clock_timestamp() > snowflake.time_of($later) + interval '2 ms'") or BAIL_OUT('the clock stands still');
my $while_it_waits = soon('SELECT snowflake.settled_before()');
is(soon('SELECT count(*) FROM t WHERE n = 2'), '0', 'a row whose commit waits for a standby is not visible');
is(soon('SELECT held_back_by FROM snowflake.settled'), $OPEN, 'a commit that waits for a standby holds the result back');
$node->reconfigure(synchronous_standby_names => "''");
$node->finish_writer($waiting);
cmp_ok($while_it_waits, '<=', sql('SELECT id FROM t WHERE n = 2'), 'the result during the wait for a standby did not exceed the id of the row');

$node->reconfigure('snowflake.clock_error' => "'5ms'", 'snowflake.max_clock_error' => "'10s'");
$waiting = $node->start_writer(q{SET snowflake.commit_wait = on; SET snowflake.max_wait = '1min'; INSERT INTO t (n) VALUES (7)});
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'writer' AND wait_event IN ('Extension', 'SnowflakeClock')})
  or BAIL_OUT('no commit waits for the clock');
$while_it_waits = settled();
is(held() . sql('SELECT count(*) FROM t WHERE n = 7'), $OPEN . 0, 'a commit that waits for the clock holds the result back');
$node->clock->step(20);
$node->finish_writer($waiting);
cmp_ok($while_it_waits, '<=', sql('SELECT id FROM t WHERE n = 7'), 'the result during the commit wait did not exceed the id of the row');
$node->reconfigure('snowflake.clock_error' => '-1', 'snowflake.max_clock_error' => "'100ms'");

my ($ahead) = $node->ids('SELECT (snowflake.next_ids(5, 900000))[900000]');    # 0.9 s
is(sql("SELECT snowflake.settled_before() <= snowflake.min_id(clock_timestamp() + interval '1 ms')"), 't', 'ids ahead of the clock are not settled');
is(held(), 'nothing', 'the view settled shows no reason for ids ahead of the clock');
comes_to_be_settled($ahead, 'ids ahead of the clock become settled when the clock has reached them');

# The result of settled_before() stays below the ids of a prepared transaction, even after a crash.
$late = $writer->query_safe("BEGIN; INSERT INTO t (n) VALUES (3) RETURNING id");
$writer->query_safe("PREPARE TRANSACTION 'minted'");
stays_behind($late, $PREPARED, 'the result stays below the id of a prepared transaction');
is(sql('SELECT gid FROM snowflake.settled'), 'minted', 'the view settled shows the name of the prepared transaction');
is(sql("SELECT snowflake.time_of($late) - since BETWEEN '0 ms' AND '200 ms' FROM snowflake.settled"), 't', 'the view settled shows since when the prepared transaction holds the result back');
is(sql(q{SELECT count(*), bool_and(granted) FROM pg_locks WHERE locktype = 'advisory'}), '2|t', 'the prepared transaction keeps two advisory locks');
$writer->query_safe("BEGIN; INSERT INTO t (id, n) VALUES (2, 4); PREPARE TRANSACTION 'explicit'");
$writer->query_safe("BEGIN; INSERT INTO t (n) VALUES (5); PREPARE TRANSACTION 'later'");
stays_behind($late, $PREPARED, 'the result stays below the first of three prepared transactions');
my $before = settled();
$writer->quit;
$node->stop('immediate');
$node->start;
is(sql('SELECT gid, held_back_by FROM snowflake.settled'), "minted|$PREPARED", 'after a crash, before the first id, the view settled shows the prepared transaction');
cmp_ok(settled(), '>=', $before, 'after a crash the result is not less than before');
stays_behind($late, $PREPARED, 'after a crash the result stays below the id of the prepared transaction while the database mints');
sql("COMMIT PREPARED 'minted'");
is(sql('SELECT gid FROM snowflake.settled'), 'later', 'when the first transaction is committed, the view settled shows the next one');
cmp_ok(settled(), '>', $late, 'when the first transaction is committed, its id is settled');
sql("ROLLBACK PREPARED 'later'");
comes_to_be_settled(sql('INSERT INTO t DEFAULT VALUES RETURNING id'), 'a prepared transaction that did not mint holds nothing back');
is(sql('SELECT gid FROM pg_prepared_xacts'), 'explicit', 'the prepared transaction that did not mint still exists');
sql("ROLLBACK PREPARED 'explicit'");
is(sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), '0', 'without a prepared transaction there is no advisory lock');

# Tests sessions that are terminated or killed while their transactions are open.
$writer = $node->session;
$pid = $writer->query_safe('SELECT pg_backend_pid()');
$late = $writer->query_safe('BEGIN; INSERT INTO t DEFAULT VALUES RETURNING id');
stays_behind($late, $OPEN, 'the result stays below the id of a session before it is terminated');
sql("SELECT pg_terminate_backend($pid, 60000)");
comes_to_be_settled($late, 'a terminated session holds nothing back');
eval { $writer->quit };
$writer = $node->session;
$pid = $writer->query_safe('SELECT pg_backend_pid()');
$late = $writer->query_safe('BEGIN; INSERT INTO t DEFAULT VALUES RETURNING id');
$before = settled();
$node->kill_backend($pid);
cmp_ok(settled(), '>=', $before, 'the result is not less after a session was killed');
comes_to_be_settled($late, 'the transaction of a killed session holds nothing back');
eval { $writer->quit };

foreach my $level ('REPEATABLE READ', 'SERIALIZABLE')
{
	$node->refuses("BEGIN ISOLATION LEVEL $level; SELECT snowflake.settled_before()",
		{
			sqlstate => '25001',
			message => 'cannot execute settled_before\(\) in a REPEATABLE READ or SERIALIZABLE transaction',
			detail => "The transaction is $level, so all its queries use one snapshot\\. The result of settled_before\\(\\) would be newer than this snapshot\\.",
			hint => 'Call settled_before\(\) in a READ COMMITTED transaction, before the transaction that reads the rows.' },
		"settled_before() fails in a $level transaction");
	is(sql("BEGIN ISOLATION LEVEL $level; SELECT * FROM snowflake.settled"), '|this transaction is REPEATABLE READ or SERIALIZABLE|||', "the view settled shows the reason in a $level transaction");
}
# A statement that calls settled_before() can miss rows below the result, because the statement's snapshot is older.
$writer = $node->session;
$writer->query_safe('SELECT pg_advisory_lock(8)');
$late = $writer->query_safe('BEGIN; INSERT INTO t DEFAULT VALUES RETURNING id');
my $both = $node->start_writer(
	"SELECT CASE WHEN snowflake.settled_before() > $late AND NOT EXISTS (SELECT FROM t WHERE id = $late) THEN 4711 END FROM (SELECT pg_advisory_lock(8) OFFSET 0) AS waited");
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'advisory'}) or BAIL_OUT('nobody waits');
$writer->query_safe('COMMIT');
comes_to_be_settled($late, 'an id that is committed while another statement runs becomes settled');
$writer->query_safe('SELECT pg_advisory_unlock(8)');
is_deeply($node->finish_writer($both)->{ids}, [4711], 'the other statement gets a result above the id, but does not see the row');

# settled_before() does not cover ids that another transaction inserts later, or ids that another server minted.
my ($reserved) = $node->ids('SELECT unnest(snowflake.next_ids(5, 1))');
comes_to_be_settled($reserved, 'an id that was minted for a later insert becomes settled before the insert');
is(sql("INSERT INTO t (id) VALUES ($reserved), (snowflake.make_id('2026-01-01', 5, 0)) RETURNING id < snowflake.settled_before()"), "t\nt", 'an id of make_id() can be inserted below the result');

# The result of settled_before() never exceeds the high-water mark, which does not rise while no ids are minted.
$before = settled();
$node->clock->step(-0.05);
cmp_ok(settled(), '>=', $before, 'the result is not less after the clock was set back');
$node->clock->step(20);
my $mark = $node->mark;
cmp_ok(settled(), '<=', sql("SELECT snowflake.min_id(to_timestamp($mark / 1000.0))"), 'a database that mints nothing is settled up to its mark');
cmp_ok(settled(), '>', sql('SELECT max(id) FROM t'), 'the result is above all ids of the table');
is(held(), 'nothing', 'the view settled shows no reason if the result has reached the mark');
$before = settled();
$node->stop('immediate');
$node->clock->step(-15);
$node->start;
cmp_ok(settled(), '>=', $before, 'after a crash with the clock set back the result is not less');
$node->safe_psql('postgres', "SET snowflake.max_wait = '1min'; INSERT INTO t (n) VALUES (6)");
cmp_ok(sql('SELECT id FROM t WHERE n = 6'), '>=', $before, 'after a crash with the clock set back no id is below an earlier result');

# If the high-water mark is far ahead of the clock, the result of settled_before() follows the clock.
$node->clock->step(15);
sql('SELECT snowflake.next_id(5)');
$before = settled();
$node->stop('fast');
$node->clock->step(-600);
$node->start;
cmp_ok(settled(), '<', $before, 'with a mark far ahead of the clock the result is near the clock');
like($node->error_of('SELECT snowflake.next_id(5)'), qr/55000/, 'with a mark far ahead of the clock next_id() fails');
$node->clock->step(600);
ok($node->poll_query_until('postgres', "SELECT snowflake.settled_before() >= $before"), 'the result reaches the earlier one when the clock has caught up');

# Tests settled_before() after a server start and before the first id, while the high-water mark cannot be read.
$node->restart;
my $dropper = $node->session;
$dropper->query_safe('BEGIN; SET client_min_messages = error; DROP EXTENSION snowflake CASCADE');
is(sql("SET lock_timeout = '60s'; SELECT snowflake.settled_before() IS NULL"), 't', 'settled_before() returns NULL while a transaction drops the extension');
is(sql("SET lock_timeout = '60s'; SELECT held_back_by FROM snowflake.settled()"), 'the high-water mark is locked, lost or not durable yet', 'settled() shows that the mark cannot be read');
$dropper->query_safe('ROLLBACK');
like(settled(), qr/^\d+$/, 'settled_before() returns a number when the DROP is rolled back');
$dropper->quit;

$before = settled();
sql('DROP EXTENSION snowflake CASCADE; CREATE EXTENSION snowflake; ALTER TABLE t ALTER id SET DEFAULT snowflake.next_id(5)');
cmp_ok(settled(), '>=', $before, 'the result is not less after the extension was created again');
cmp_ok(sql('INSERT INTO t DEFAULT VALUES RETURNING id'), '>=', $before, 'no id is below an earlier result after the extension was created again');
my $holder = $node->session;
$holder->query_safe('BEGIN; LOCK TABLE snowflake.health IN ACCESS EXCLUSIVE MODE');
like(settled(), qr/^\d+$/, 'settled_before() does not wait for a lock on the view health');
$holder->quit;

done_testing();
