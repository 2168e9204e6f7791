# Tests that DDL on a schema is refused while the schema is moved to another server.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use Snowflake::Fleet;
use Snowflake::Mover;
use Snowflake::Node;
use Test::More;

my $fleet = Snowflake::Fleet->new({ a => [ 0 .. 6 ], b => [7] });
my $mover = Snowflake::Mover->new($fleet);
my ($north, $south) = map { $fleet->node($_) } 'a', 'b';
$_->safe_psql('postgres', 'CREATE ROLE tenant LOGIN; CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NEW; END$$') foreach $north, $south;

$north->safe_psql('postgres', <<~'SQL');
	SET search_path = shard_1, public;
	CREATE SEQUENCE s;
	ALTER TABLE users ADD code varchar DEFAULT 'new' CHECK (code IN ('new', 'old'));
	CREATE STATISTICS st ON id, name FROM users;
	CREATE TRIGGER t BEFORE INSERT ON users FOR EACH ROW EXECUTE FUNCTION note();
	CREATE TABLE public.elsewhere (id bigint PRIMARY KEY); ALTER TABLE public.elsewhere OWNER TO tenant;
	ALTER TABLE photos OWNER TO tenant;
	SQL
$mover->run('--shard' => 1, '--to' => 'b', '--until' => 'copied')->{status} == 0 or die;
my @ddl = (
	'CREATE TABLE shard_1.late (id bigint PRIMARY KEY)', 'CREATE TABLE shard_1.late AS SELECT 1', 'SELECT 1 AS x INTO shard_1.late', 'CREATE UNLOGGED TABLE shard_1.late ()',
	'ALTER TABLE shard_1.users ADD balance int DEFAULT 100', 'ALTER TABLE shard_1.users ALTER name TYPE varchar USING upper(name)', 'ALTER TABLE shard_1.users RENAME name TO n',
	'ALTER TABLE shard_1.users ENABLE ROW LEVEL SECURITY', 'ALTER TABLE shard_1.users OWNER TO tenant', 'ALTER TABLE shard_1.users SET (fillfactor = 50)',
	'ALTER TABLE shard_1.users REPLICA IDENTITY FULL', 'ALTER TABLE shard_1.users ALTER name SET STATISTICS 7',
	'ALTER TABLE shard_1.users DISABLE TRIGGER t', 'ALTER TABLE shard_1.users ENABLE ALWAYS TRIGGER t', 'DROP TRIGGER t ON shard_1.users', 'ALTER TRIGGER t ON shard_1.users RENAME TO tt',
	'DROP TABLE shard_1.photos', 'DROP SCHEMA shard_1 CASCADE', 'ALTER SCHEMA shard_1 RENAME TO other', 'ALTER SCHEMA shard_1 OWNER TO tenant',
	'CREATE INDEX ON shard_1.users (name)', 'DROP INDEX shard_1.photos_user_id_idx', 'CREATE INDEX CONCURRENTLY ON shard_1.users (name)', 'DROP INDEX CONCURRENTLY shard_1.photos_user_id_idx',
	'ALTER TABLE public.elsewhere SET SCHEMA shard_1', 'ALTER TABLE shard_1.users SET SCHEMA public', 'CREATE TABLE public.child () INHERITS (shard_1.users)', 'CREATE VIEW public.w AS SELECT name FROM shard_1.users',
	'CREATE TABLE public.refers (id bigint REFERENCES shard_1.users)', 'CREATE PUBLICATION cdc FOR TABLE shard_1.users', 'CREATE VIEW shard_1.v AS SELECT 2 AS one',
	'CREATE FUNCTION shard_1.g() RETURNS int LANGUAGE sql AS \'SELECT 2\'', "CREATE TYPE shard_1.mood AS ENUM ('well')", 'CREATE DOMAIN shard_1.short AS text',
	'ALTER SEQUENCE shard_1.s INCREMENT 2', 'ALTER SEQUENCE shard_1.s OWNED BY shard_1.users.id', 'CREATE SEQUENCE shard_1.q',
	'GRANT SELECT ON shard_1.users TO tenant', 'GRANT SELECT (name) ON shard_1.users TO tenant', 'GRANT USAGE ON SCHEMA shard_1 TO tenant', 'GRANT SELECT ON ALL TABLES IN SCHEMA shard_1 TO tenant',
	'ALTER DEFAULT PRIVILEGES IN SCHEMA shard_1 GRANT SELECT ON TABLES TO tenant',
	"COMMENT ON TABLE shard_1.users IS 'late'", "COMMENT ON COLUMN shard_1.users.name IS 'late'", "COMMENT ON SCHEMA shard_1 IS 'late'",
	'CREATE POLICY q ON shard_1.users USING (false)', 'CREATE RULE r AS ON DELETE TO shard_1.users DO INSTEAD NOTHING', 'CREATE STATISTICS shard_1.more ON id, name FROM shard_1.users',
	'SET session_replication_role = replica; ALTER TABLE shard_1.users ADD x int', "SET snowflake_fleet.altered = 'all'; ALTER TABLE shard_1.users ADD x int", 'DROP OWNED BY tenant CASCADE');
my %refusal = (sqlstate => 55006, message => 'schema shard_1 is being moved to another server', detail => 'would change the schema', hint => '--abort');
$north->refuses($_, \%refusal, "refused: $_") foreach @ddl;
$north->safe_psql('postgres', $_) foreach 'CREATE TABLE shard_2.more (id int PRIMARY KEY)', 'CREATE TABLE public.more (id int)', 'CREATE TEMPORARY TABLE x ()', 'VACUUM FULL shard_1.users', 'ANALYZE shard_1.users', 'REINDEX TABLE shard_1.users',
  'TRUNCATE shard_1.photos', "DROP TABLE public.more", 'CREATE INDEX CONCURRENTLY ON shard_2.users (name)';
# If ALTER TABLE rewrites a table, logical replication does not send the changed rows. The test disables the event
# trigger snowflake_move_guard, which refuses a table rewrite in some minor versions of PostgreSQL.
$north->safe_psql('postgres', 'ALTER EVENT TRIGGER snowflake_move_guard DISABLE');
$north->refuses("ALTER TABLE shard_1.users ALTER name TYPE text USING name || '!'", \%refusal, 'a rewrite of a table of the moving schema is refused');
$north->safe_psql('postgres', $_) foreach 'CREATE TABLE public.other (n int)', 'ALTER TABLE public.other ALTER n TYPE int USING n + 1', 'DROP TABLE public.other', 'ALTER EVENT TRIGGER snowflake_move_guard ENABLE ALWAYS';
my $moved = $mover->run('--shard' => 1, '--to' => 'b');
is($moved->{status}, 0, 'DDL on other schemas and maintenance do not stop the move') or diag($moved->{output});
$north->refuses('CREATE TABLE shard_1_moved.late ()', { sqlstate => 55006, message => 'was kept when shard 1 moved', hint => '--drop-source' }, 'DDL on the kept schema is refused');
$south->safe_psql('postgres', 'CREATE TABLE shard_1.after ()');
$south->safe_psql('postgres', 'ALTER EVENT TRIGGER snowflake_move_guard_rewrite ENABLE');
like($mover->run('--shard' => 7, '--to' => 'a', '--check')->{output}, qr/event trigger .* is missing, or is not ENABLE ALWAYS/, 'a move is refused if an event trigger is not ENABLE ALWAYS');
$south->safe_psql('postgres', 'ALTER EVENT TRIGGER snowflake_move_guard_rewrite ENABLE ALWAYS');

# Runs DDL while snowflake-move-shard waits for a long transaction before it locks the tables.
$mover->run('--shard' => 2, '--to' => 'b', '--until' => 'copied');
my $writer = $north->session;
$writer->query_safe('BEGIN');
$writer->query_safe("INSERT INTO shard_2.users (name) VALUES ('begun before')");
my $move = $mover->start('--shard' => 2, '--to' => 'b');
$mover->wait_for($move, qr/writers or other locks did not end within 300 ms: attempt 1; waiting for process \d+/);
$north->refuses('CREATE TABLE shard_2.late (id bigint PRIMARY KEY); INSERT INTO shard_2.late SELECT generate_series(1, 500)', { sqlstate => 55006, message => 'schema shard_2 is being moved' }, 'CREATE TABLE is refused while the fence waits');
my $waits = $north->start_writer('ALTER TABLE shard_2.users ADD balance int DEFAULT 100;');
$north->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'ALTER TABLE shard_2%'") or die;
$writer->query_safe('COMMIT');
$writer->quit;
like($north->finish_writer($waits)->{errors}, qr/schema shard_2 is being moved to another server/, 'ALTER TABLE that waits for the same transaction is refused afterwards');
is($mover->finish($move)->{status}, 0, 'the move succeeds after the refused DDL');
is($south->safe_psql('postgres', "SELECT count(*) FROM shard_2.users WHERE name = 'begun before'"), '1', 'the target has the row of the long transaction');

# Runs DDL in a transaction that began before the move of the schema. The move must wait until this transaction has
# ended.
foreach my $case ([ 3, 'ALTER TABLE shard_3.users ADD balance int DEFAULT 7', undef, 'SELECT count(*) FROM shard_3.users WHERE balance = 7' ],
	[ 5, 'CREATE TABLE shard_5.late (id bigint PRIMARY KEY); INSERT INTO shard_5.late SELECT generate_series(1, 500)', qr/waiting for transactions that have written, \d+ s: process \d+/, 'SELECT count(*) FROM shard_5.late' ])
{
	my ($shard, $ddl, $said, $query) = @$case;
	$north->safe_psql('postgres', "INSERT INTO shard_$shard.users (name) SELECT 'x' FROM generate_series(1, 500)");
	my $migration = $north->session;
	$migration->query_safe('BEGIN');
	$migration->query_safe($ddl);
	if ($said)
	{
		$move = $mover->start('--shard' => $shard, '--to' => 'b');
		$mover->wait_for($move, $said);
	}
	else
	{
		like($mover->run('--shard' => $shard, '--to' => 'b')->{output}, qr/a table of schema shard_3 is locked, or vacuumed: the lock was not granted within 5000 ms\n.*process \d+/, 'the message names the locked table');
	}
	$migration->query_safe('COMMIT');
	$migration->quit;
	my $finished = $said ? $mover->finish($move) : $mover->run('--shard' => $shard, '--to' => 'b');
	is($finished->{status}, 0, "the move succeeds after DDL from before the move: $ddl") or diag($finished->{output});
	is($south->safe_psql('postgres', $query), '500', "the target has the result of $ddl");
}

# The last step of a move must detect DDL that a superuser has run while the event trigger was disabled. DDL on other
# schemas must succeed.
my $off = 'ALTER EVENT TRIGGER snowflake_move_guard DISABLE';
my $on = 'ALTER EVENT TRIGGER snowflake_move_guard ENABLE ALWAYS';
foreach my $case ([ 4, "$off; CREATE TABLE shard_4.late (id int PRIMARY KEY); INSERT INTO shard_4.late SELECT generate_series(1, 500); $on", 'SELECT count(*) FROM shard_4.late', '500' ],
	[ 0, ($north->pg_version >= 17 ? 'SET event_triggers = off; ' : '') . 'REINDEX TABLE CONCURRENTLY shard_0.users', "SELECT count(*) FROM shard_0.users WHERE name = 'on'", '1' ])
{
	my ($shard, $ddl, $query, $result) = @$case;
	$mover->run('--shard' => $shard, '--to' => 'b', '--until' => 'copied');
	$writer = $north->session;
	$writer->query_safe('BEGIN');
	$writer->query_safe("INSERT INTO shard_$shard.photos (user_id) SELECT 1 WHERE false; LOCK shard_$shard.photos IN ROW EXCLUSIVE MODE");
	$move = $mover->start('--shard' => $shard, '--to' => 'b');
	$mover->wait_for($move, qr/writers or other locks did not end/);
	# REINDEX waits for the transaction in which snowflake-move-shard tries to lock the table. REINDEX and the move then
	# block each other (a deadlock), so PostgreSQL ends one of the two transactions.
	while ((my $error = $north->error_of($ddl)) !~ /^no error/)
	{
		die $error if $error !~ /40P01/;
		$north->safe_psql('postgres', "$off; " . $north->safe_psql('postgres',
			"SELECT coalesce(string_agg(format('DROP INDEX %s;', indexrelid::regclass), ''), '') FROM pg_index WHERE NOT indisvalid") . " $on");
	}
	$north->safe_psql('postgres', $_) foreach 'CREATE TABLE public.more ()', 'DO $$BEGIN CREATE TABLE public.other (); DROP TABLE public.other; END$$', 'DROP TABLE public.more';
	$writer->query_safe('COMMIT');
	$writer->quit;
	my $finished = $mover->finish($move);
	is($finished->{status}, 1, "the move fails because of $ddl");
	like($finished->{output}, qr/schema shard_$shard was altered since the move began(?s:.*)--abort|the schema cannot be moved in its present state/, "the output explains that the schema was altered: $ddl");
	is($north->safe_psql('postgres', "INSERT INTO shard_$shard.users (name) VALUES ('on') RETURNING 1"), '1', "the source accepts writes after the failed move: $ddl");
	is($mover->run('--shard' => $shard, '--to' => 'b', '--abort')->{status}, 0, "--abort succeeds after $ddl");
	is($mover->leftovers, '', "nothing of the move remains after $ddl");
	is($mover->run('--shard' => $shard, '--to' => 'b')->{status}, 0, "the altered schema is moved after $ddl");
	is($south->safe_psql('postgres', $query), $result, "the target has the new objects of $ddl");
}

# A new subscription could write to a schema that is closed for writers (fenced), because its worker fires no statement
# triggers.
$mover->run('--shard' => 6, '--to' => 'b', '--until' => 'copied');
$north->safe_psql('postgres', q{CREATE SUBSCRIPTION feed CONNECTION 'dbname=none' PUBLICATION none WITH (connect = false); INSERT INTO pg_subscription_rel SELECT oid, 'shard_6.users'::regclass, 'r' FROM pg_subscription});
like($mover->run('--shard' => 6, '--to' => 'b')->{output}, qr/filled by subscription feed/, 'a move fails if a subscription fills the schema');
$north->refuses('SELECT snowflake_fleet.fence_shard(6)', { sqlstate => 55000, message => 'schema shard_6 is filled by subscription feed', hint => 'Drop the subscription' }, 'fence_shard() fails if a subscription fills the schema');
$north->safe_psql('postgres', 'DELETE FROM pg_subscription_rel; ALTER SUBSCRIPTION feed SET (slot_name = NONE); DROP SUBSCRIPTION feed');
is($mover->run('--shard' => 6, '--to' => 'b')->{status}, 0, 'the shard is moved when the subscription is dropped');

done_testing();
