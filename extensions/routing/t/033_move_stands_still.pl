# A schema stands still while it moves: DDL is refused, whatever its form; and what gets by is found at the fence.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use Snowflake::Fleet;
use Snowflake::Mover;
use Snowflake::Node;
use Test::More;

my $fleet = Snowflake::Fleet->new({ a => [ 0 .. 4 ], b => [5] });
my $mover = Snowflake::Mover->new($fleet);
my ($north, $south) = map { $fleet->node($_) } 'a', 'b';
$_->safe_psql('postgres', 'CREATE ROLE tenant') foreach $north, $south;

# Something of each kind, to be altered.
$north->safe_psql('postgres', <<~'SQL');
	SET search_path = shard_1;
	CREATE TYPE mood AS ENUM ('well'); CREATE DOMAIN short AS text CHECK (length(VALUE) < 10); CREATE TYPE pair AS (a int, b int);
	CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE VIEW v AS SELECT 1 AS one; CREATE SEQUENCE s;
	ALTER TABLE users ADD code varchar DEFAULT 'new' CHECK (code IN ('new', 'old')), ADD m mood;
	CREATE POLICY p ON users USING (true); CREATE STATISTICS st ON id, name FROM users;
	CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NEW; END$$;
	CREATE TRIGGER t BEFORE INSERT ON users FOR EACH ROW EXECUTE FUNCTION note();
	CREATE TABLE public.elsewhere (id bigint PRIMARY KEY); ALTER TABLE public.elsewhere OWNER TO tenant;
	ALTER FUNCTION f OWNER TO tenant;
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
	'ALTER TABLE public.elsewhere SET SCHEMA shard_1', 'ALTER TABLE shard_1.users SET SCHEMA public', 'CREATE TABLE public.heir () INHERITS (shard_1.users)', 'CREATE VIEW public.w AS SELECT name FROM shard_1.users',
	'CREATE TABLE public.refers (id bigint REFERENCES shard_1.users)', 'CREATE PUBLICATION cdc FOR TABLE shard_1.users',
	'CREATE OR REPLACE FUNCTION shard_1.f() RETURNS int LANGUAGE sql AS \'SELECT 2\'', 'CREATE FUNCTION shard_1.g() RETURNS int LANGUAGE sql AS \'SELECT 2\'', 'DROP FUNCTION shard_1.f', 'ALTER FUNCTION shard_1.f STABLE',
	'CREATE OR REPLACE VIEW shard_1.v AS SELECT 2 AS one', 'DROP VIEW shard_1.v', "ALTER TYPE shard_1.mood ADD VALUE 'ill'", "ALTER TYPE shard_1.mood RENAME VALUE 'well' TO 'ill'", 'ALTER TYPE shard_1.pair ADD ATTRIBUTE c int',
	'ALTER DOMAIN shard_1.short SET NOT NULL', 'ALTER DOMAIN shard_1.short DROP CONSTRAINT short_check', 'ALTER SEQUENCE shard_1.s INCREMENT 2', 'ALTER SEQUENCE shard_1.s OWNED BY shard_1.users.id', 'CREATE SEQUENCE shard_1.q',
	'GRANT SELECT ON shard_1.users TO tenant', 'GRANT SELECT (name) ON shard_1.users TO tenant', 'GRANT USAGE ON SCHEMA shard_1 TO tenant', 'REVOKE ALL ON FUNCTION shard_1.f() FROM PUBLIC', 'GRANT SELECT ON ALL TABLES IN SCHEMA shard_1 TO tenant',
	'ALTER DEFAULT PRIVILEGES IN SCHEMA shard_1 GRANT SELECT ON TABLES TO tenant',
	"COMMENT ON TABLE shard_1.users IS 'late'", "COMMENT ON COLUMN shard_1.users.name IS 'late'", "COMMENT ON SCHEMA shard_1 IS 'late'", "COMMENT ON FUNCTION shard_1.f() IS 'late'",
	'CREATE POLICY q ON shard_1.users USING (false)', 'ALTER POLICY p ON shard_1.users USING (false)', 'DROP POLICY p ON shard_1.users', 'CREATE RULE r AS ON DELETE TO shard_1.users DO INSTEAD NOTHING',
	'CREATE STATISTICS shard_1.more ON id, name FROM shard_1.users', 'ALTER STATISTICS shard_1.st SET STATISTICS 7', 'CREATE OPERATOR shard_1.=== (LEFTARG = int, RIGHTARG = int, FUNCTION = int4eq)',
	'CREATE AGGREGATE shard_1.total (int) (SFUNC = int4pl, STYPE = int)', 'CREATE COLLATION shard_1.c (locale = \'C\')', 'CREATE TYPE shard_1.more AS ENUM ()',
	'SET session_replication_role = replica; ALTER TABLE shard_1.users ADD x int', 'DROP OWNED BY tenant CASCADE');
my %refusal = (sqlstate => 55006, message => 'schema shard_1 moves to another server', detail => 'would change it', hint => '--abort');
$north->refuses($_, \%refusal, "refused on the source: $_") foreach @ddl;
$south->refuses($_, \%refusal, "refused on the target: $_") foreach 'CREATE TABLE shard_1.late ()', 'ALTER TABLE shard_1.users DISABLE TRIGGER t', 'GRANT SELECT ON shard_1.users TO tenant', 'DROP SCHEMA shard_1 CASCADE';
$north->safe_psql('postgres', $_) foreach 'CREATE TABLE shard_2.more (id int PRIMARY KEY)', 'CREATE TABLE public.more (id int)', 'CREATE TEMPORARY TABLE x ()', 'VACUUM FULL shard_1.users', 'ANALYZE shard_1.users', 'REINDEX TABLE shard_1.users',
  'TRUNCATE shard_1.photos', "DROP TABLE public.more", 'CREATE INDEX CONCURRENTLY ON shard_2.users (name)';
my $moved = $mover->run('--shard' => 1, '--to' => 'b');
is($moved->{status}, 0, 'other DDL, and maintenance, are in nobody\'s way') or diag($moved->{output});
is($south->safe_psql('postgres', "SELECT relrowsecurity, (SELECT count(*) FROM pg_policy WHERE polrelid = c.oid) FROM pg_class AS c WHERE oid = 'shard_1.users'::regclass"), 'f|1', 'the target has what was there');
$north->refuses('CREATE TABLE shard_1_moved.late ()', { sqlstate => 55006, message => 'what was left of shard 1', hint => '--drop-source' }, 'what was kept stays as it is');
$south->safe_psql('postgres', 'CREATE TABLE shard_1.after ()');

# At the fence: a writer is open for minutes, and somebody migrates.
$mover->run('--shard' => 2, '--to' => 'b', '--until' => 'copied');
my $writer = $north->session;
$writer->query_safe('BEGIN');
$writer->query_safe("INSERT INTO shard_2.users (name) VALUES ('begun before')");
my $move = $mover->start('--shard' => 2, '--to' => 'b');
$mover->wait_for($move, qr/writers were not done in 300 ms: attempt 1; waiting for process \d+/);
$north->refuses('CREATE TABLE shard_2.late (id bigint PRIMARY KEY); INSERT INTO shard_2.late SELECT generate_series(1, 500)', { sqlstate => 55006, message => 'schema shard_2 moves' }, 'a table that is made while the fence waits');
my $waits = $north->start_writer('ALTER TABLE shard_2.users ADD balance int DEFAULT 100;');
$north->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'ALTER TABLE shard_2%'") or die;
$writer->query_safe('COMMIT');
$writer->quit;
like($north->finish_writer($waits)->{errors}, qr/schema shard_2 moves to another server/, 'a migration that waits for the same writer');
is($mover->finish($move)->{status}, 0, 'it moves all the same');
is($south->safe_psql('postgres', "SELECT count(*) FROM shard_2.users WHERE name = 'begun before'"), '1', 'with what had begun');

# A migration that had begun before the move is waited for, and comes along.
my $migration = $north->session;
$migration->query_safe('BEGIN');
$migration->query_safe("CREATE TABLE shard_3.late (id bigint PRIMARY KEY, t text); INSERT INTO shard_3.late SELECT n, 'x' FROM generate_series(1, 500) n");
$move = $mover->start('--shard' => 3, '--to' => 'b');
$mover->wait_for($move, qr/waiting for transactions that have written, \d+ s: process \d+/);
$migration->query_safe('COMMIT');
$migration->quit;
my $finished = $mover->finish($move);
is($finished->{status}, 0, 'a migration that had begun before is waited for') or diag($finished->{output});
is($south->safe_psql('postgres', "SELECT count(*) FROM shard_3.late"), '500', 'and comes along');

# Who turns the event trigger off is found out under the fence, and nothing is lost.
foreach my $case ([ 4, 'CREATE TABLE shard_4.late (id int PRIMARY KEY); INSERT INTO shard_4.late SELECT generate_series(1, 500)', 'SELECT count(*) FROM shard_4.late', '500' ],
	[ 0, 'CREATE OR REPLACE VIEW shard_0.v AS SELECT 1 AS one', 'SELECT one FROM shard_0.v', '1' ])
{
	my ($shard, $ddl, $query, $result) = @$case;
	$mover->run('--shard' => $shard, '--to' => 'b', '--until' => 'copied');
	$writer = $north->session;
	$writer->query_safe('BEGIN');
	$writer->query_safe("INSERT INTO shard_$shard.users (name) VALUES ('begun before')");
	$move = $mover->start('--shard' => $shard, '--to' => 'b');
	$mover->wait_for($move, qr/writers were not done/);
	$north->safe_psql('postgres', "ALTER EVENT TRIGGER snowflake_move_guard DISABLE; $ddl; ALTER EVENT TRIGGER snowflake_move_guard ENABLE ALWAYS");
	$writer->query_safe('COMMIT');
	$writer->quit;
	$finished = $mover->finish($move);
	is($finished->{status}, 1, "found at the fence: $ddl");
	like($finished->{output}, qr/schema "?shard_$shard"? was altered since the move began(?s:.*)--abort/, '... in a sentence');
	is($north->safe_psql('postgres', "INSERT INTO shard_$shard.users (name) VALUES ('on') RETURNING 1"), '1', '... the source takes writes');
	is($mover->run('--shard' => $shard, '--to' => 'b', '--abort')->{status}, 0, '... taken back');
	is($mover->leftovers, '', '... nothing is left over');
	is($mover->run('--shard' => $shard, '--to' => 'b')->{status}, 0, '... and moved as it is now');
	is($south->safe_psql('postgres', $query), $result, '... with what was made');
}

done_testing();
