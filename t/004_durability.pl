# Tests that the WAL of a new high-water mark is flushed before next_id() returns an id that needs the new high-water
# mark. Tests how much WAL the writes of the high-water mark produce.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Ledger;
use Snowflake::Node;
use Test::More;

# The WAL writer sleeps during this test, so an immediate stop loses all WAL that no backend flushed.
my $node = Snowflake::Node->create_running('main', allows_streaming => 1, conf => <<~'CONF');
	wal_writer_delay = 10s
	max_prepared_transactions = 2
	snowflake.max_lead = 60s
	CONF
my $ledger = Snowflake::Ledger->new;

sub time_of
{
	my ($id) = @_;
	return $node->safe_psql('postgres',
		"SELECT (extract(epoch FROM snowflake.time_of($id)) * 1000)::bigint");
}

# Mints ids until the high-water mark has risen, and crashes the server. After recovery the high-water mark must be
# above the last id.
sub is_durable
{
	my ($name) = @_;
	foreach my $round (1 .. 2)
	{
		my @ids = $node->ids(<<~'SQL');
			SET synchronous_commit = off;
			SELECT snowflake.next_id(7), pg_sleep(0.02) FROM generate_series(1, 40);
			SELECT snowflake.next_id(7);
			SQL
		tr/|//d foreach @ids;
		$ledger->record('psql', @ids);
		$node->crash($ledger, -3);
		cmp_ok($node->mark, '>', time_of($ids[-1]), "$name: the mark is above the last id, round $round");
		$node->mint($ledger);
	}
	$ledger->check(10_000, $name);
	return;
}

$node->safe_psql('postgres', "LOAD 'snowflake'; ALTER SYSTEM SET snowflake.reserve = '200ms'");
$node->restart;
is_durable('an immediate stop while the WAL writer sleeps');

# A transaction in which next_id() writes the high-water mark gets no transaction id and holds no lock.
$node->clock->set(0);
$ledger->new_server_run;
$node->restart;
my $before = $node->mark;
is( $node->safe_psql('postgres', <<~'SQL'), "0\n0\nt", 'a call that writes the mark holds no lock and has no transaction id');
	BEGIN;
	DO 'BEGIN PERFORM snowflake.next_id(1); END';
	SELECT count(*) FROM pg_locks
	 WHERE pid = pg_backend_pid() AND locktype <> 'virtualxid' AND relation <> 'pg_locks'::regclass;
	DO 'BEGIN PERFORM snowflake.next_id(1), pg_sleep(0.01) FROM generate_series(1, 60); END';
	SELECT count(*) FROM pg_locks
	 WHERE pid = pg_backend_pid() AND locktype <> 'virtualxid' AND relation <> 'pg_locks'::regclass;
	SELECT pg_current_xact_id_if_assigned() IS NULL;
	SQL
cmp_ok($node->mark, '>=', $before + 600, 'the call before had indeed raised the mark');

my $idle = $node->session;
$idle->query_safe('BEGIN; SELECT snowflake.next_id(1)');
$node->clock->step(+1);
$node->safe_psql('postgres', <<~'SQL');
	BEGIN;
	SELECT snowflake.next_id(1);
	PREPARE TRANSACTION 'minted';
	SQL
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_locks WHERE pid IS NULL AND relation IS NOT NULL'),
	'0', 'a prepared transaction that minted holds no lock');
is($node->safe_psql('postgres', "SET lock_timeout = '60s'; BEGIN; DROP EXTENSION snowflake; ROLLBACK; SELECT 'done'"),
	'done', 'DROP EXTENSION waits for no open or prepared transaction that minted');
$idle->quit;
$node->safe_psql('postgres', "ROLLBACK PREPARED 'minted'");

$node->safe_psql('postgres', "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
$node->restart;
my $timed_out = 0;
$node->psql('postgres', 'SELECT snowflake.next_id(1), pg_sleep(0.01) FROM generate_series(1, 50)',
	timeout => $PostgreSQL::Test::Utils::timeout_default, timed_out => \$timed_out);
ok(!$timed_out, 'no call waits for a missing synchronous standby');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET synchronous_standby_names');

# Even at the highest rate of ids, the server writes the high-water mark only about twice a second. The default of
# "snowflake.reserve" is one second, and a new high-water mark is written when half of this time is used.
$node->safe_psql('postgres', 'ALTER SYSTEM RESET snowflake.reserve');
$node->restart;
my $from = $node->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');
my $seconds = $node->safe_psql('postgres', <<~'SQL');
	DO 'DECLARE began timestamptz := clock_timestamp();
	    BEGIN
	      WHILE clock_timestamp() < began + interval ''2 s'' LOOP
	        PERFORM snowflake.next_id(g) FROM generate_series(0, 99) g;
	      END LOOP;
	      CREATE TABLE took AS SELECT extract(epoch FROM clock_timestamp() - began) AS seconds;
	    END';
	SELECT seconds FROM took;
	SQL
my $to = $node->safe_psql('postgres', 'SELECT pg_current_wal_flush_lsn()');
my ($records) = run_command([ 'pg_waldump', '-p', $node->data_dir . '/pg_wal', '-r', 'Generic', '-s', $from, '-e', $to ]);
my $count = () = $records =~ /rmgr: Generic/g;
cmp_ok($count, '>=', 1, 'minting at full rate writes the mark');
cmp_ok($count, '<=', 2 * $seconds + 4, 'minting at full rate writes the mark about twice a second');

# PostgreSQL's own sequence functions read and write the high-water mark correctly.
$node->mint($ledger);
my $next = $node->mark + 1;
is($node->safe_psql('postgres', "SELECT nextval('snowflake.high_water')"), $next, 'nextval() returns the next value of the mark');
$node->mint($ledger);
my $raised = $node->mark + 5000;
$node->safe_psql('postgres', "SELECT setval('snowflake.high_water', $raised)");
is($node->mark, $raised, 'setval() sets the mark');
$node->crash($ledger);
$node->mint($ledger);
is($node->safe_psql('postgres', "SELECT count(*) FROM snowflake.shard_stats WHERE last_time < to_timestamp($raised / 1000.0)"),
	'0', 'after an immediate stop ids are above a mark that setval() raised');

# Repeats the durability tests with wal_level = minimal, which writes the least WAL.
$node->stop;
$node->append_conf('postgresql.conf', <<~'CONF');
	wal_level = minimal
	max_wal_senders = 0
	full_page_writes = off
	snowflake.reserve = 200ms
	CONF
$ledger->new_server_run;
$node->start;
is_durable('wal_level = minimal, full_page_writes = off');

# With wal_level = minimal, PostgreSQL writes no WAL for a sequence in the transaction that creates the sequence.
$node->safe_psql('postgres', 'CREATE DATABASE fresh');
$node->mint($ledger, <<~'SQL', 'fresh');
	BEGIN;
	CREATE EXTENSION snowflake;
	SELECT snowflake.next_id(3) FROM generate_series(1, 100);
	SELECT unnest(snowflake.next_ids(4, 100));
	COMMIT;
	SELECT snowflake.next_id(3) FROM generate_series(1, 100);
	SQL
$node->crash($ledger, -3);
$node->mint($ledger, 'SELECT snowflake.next_id(g) FROM generate_series(3, 4) g', 'fresh');
$ledger->check(38_000, 'ids are unique after a crash if one transaction created the extension and minted');

done_testing();
