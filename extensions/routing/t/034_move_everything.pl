# A schema of everything that may move, there and back: the same definitions, rows, owners and privileges; and the options around it.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use IPC::Run;
use Snowflake::Fleet;
use Snowflake::Mover;
use Snowflake::Node;
use Test::More;

my $fleet = Snowflake::Fleet->new({ a => [ 0 .. 4 ], b => [5] });
my $mover = Snowflake::Mover->new($fleet);
my ($north, $south) = map { $fleet->node($_) } 'a', 'b';
is($mover->run('--list')->{output}, "no move is open, and nothing is kept, on a, b\n", '--list of nothing says so');
$_->safe_psql('postgres', 'CREATE ROLE tenant LOGIN; CREATE ROLE "re ader"') foreach $north, $south;
$north->safe_psql('postgres', <<~'SQL');
	SET search_path = shard_1;
	CREATE TYPE mood AS ENUM ('well', 'it''s ill'); CREATE DOMAIN short AS varchar(10) DEFAULT 'x' CHECK (VALUE IN ('x', 'y'));
	CREATE TYPE pair AS (a int, b mood); CREATE TYPE span AS RANGE (subtype = int);
	CREATE FUNCTION twice(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 2 * $1';
	CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.note := 'touched'; RETURN NEW; END$$;
	CREATE AGGREGATE total (int) (SFUNC = int4pl, STYPE = int, INITCOND = '0');
	CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = int4eq);
	CREATE COLLATION plain (locale = 'C');
	CREATE SEQUENCE down INCREMENT -3 START 100 MINVALUE -1000 MAXVALUE 1000 CACHE 5;
	CREATE TABLE "Odd ""one"", {}" (id bigint PRIMARY KEY DEFAULT snowflake.next_id(1), status varchar NOT NULL DEFAULT 'new' CHECK (status IN ('new', 'old')), m mood, s short, p pair, r span,
	  n int GENERATED ALWAYS AS IDENTITY, serial bigserial, doubled int GENERATED ALWAYS AS (twice((id % 100)::int)) STORED, note text COLLATE plain, blob bytea, parent bigint,
	  EXCLUDE USING gist (r WITH &&));
	ALTER TABLE "Odd ""one"", {}" ADD FOREIGN KEY (parent) REFERENCES "Odd ""one"", {}" DEFERRABLE INITIALLY DEFERRED, ADD dropped int;
	ALTER TABLE "Odd ""one"", {}" DROP dropped;
	CREATE INDEX ON "Odd ""one"", {}" (status) WHERE status IN ('new', 'old');
	CREATE INDEX ON "Odd ""one"", {}" (twice(n)) INCLUDE (note);
	CREATE TRIGGER touch BEFORE INSERT ON "Odd ""one"", {}" FOR EACH ROW WHEN (NEW.note IS NULL) EXECUTE FUNCTION touch();
	CREATE TABLE parts (id bigint, at date, t text, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
	CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM ('2026-01-01') TO ('2027-01-01'); CREATE TABLE parts_rest PARTITION OF parts DEFAULT;
	CREATE TABLE base (id int PRIMARY KEY); CREATE TABLE heir (extra text, PRIMARY KEY (id)) INHERITS (base);
	CREATE TABLE whole (a int, b text, key int PRIMARY KEY DEFAULT (random() * 2e9)::int); ALTER TABLE whole REPLICA IDENTITY FULL;
	CREATE VIEW shown AS SELECT id, status FROM "Odd ""one"", {}" WHERE m = 'well'; CREATE RULE nothing AS ON DELETE TO shown DO INSTEAD NOTHING;
	CREATE FUNCTION listed() RETURNS SETOF base LANGUAGE sql BEGIN ATOMIC SELECT * FROM base; END;
	CREATE STATISTICS st ON a, b FROM whole; COMMENT ON COLUMN whole.a IS 'it''s'; COMMENT ON SCHEMA shard_1 IS 'one';
	ALTER TABLE whole ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON whole TO tenant USING (b = current_user);
	GRANT SELECT, UPDATE (b) ON whole TO "re ader" WITH GRANT OPTION; GRANT USAGE ON SCHEMA shard_1 TO tenant; REVOKE ALL ON FUNCTION twice FROM PUBLIC;
	GRANT SELECT ON base TO tenant; REVOKE SELECT ON base FROM tenant;
	ALTER TABLE whole OWNER TO tenant; ALTER DEFAULT PRIVILEGES IN SCHEMA shard_1 GRANT SELECT ON TABLES TO "re ader";
	INSERT INTO "Odd ""one"", {}" (m, s, p, r, blob) SELECT 'it''s ill', 'y', ROW(n, 'well'::mood)::pair, span(n, n + 1), decode(repeat(md5(n::text), 3000), 'hex') FROM generate_series(1, 20) n;
	INSERT INTO parts SELECT n, '2026-01-01'::date + n, md5(n::text) FROM generate_series(1, 500) n;
	INSERT INTO base VALUES (1); INSERT INTO heir VALUES (2, 'x'); INSERT INTO whole VALUES (1, 'x'), (1, 'x'), (NULL, NULL);
	SELECT nextval('down') FROM generate_series(1, 7);
	SQL
sub dump_of
{
	my ($node) = @_;
	my ($out, $err);
	IPC::Run::run([ 'pg_dump', '-s', '-n', 'shard_1', '-d', $node->connstr('postgres') ], '>', \$out, '2>', \$err) or die $err;
	return $out =~ s/^\\(un)?restrict .*\n//mgr;
}
sub rows_of
{
	my ($node) = @_;
	return join "\n", map { $node->safe_psql('postgres', "SELECT count(*), md5(string_agg(t::text, ',' ORDER BY t::text COLLATE \"C\")) FROM ONLY shard_1.$_ AS t") } '"Odd ""one"", {}"', 'parts_1', 'parts_rest', 'base', 'heir', 'whole';
}
sub move_to
{
	my ($to, @more) = @_;
	my $run = $mover->run('--shard' => 1, '--to' => $to, @more);
	is($run->{status}, 0, "everything moves to $to") or diag($run->{output});
	return $run;
}
my ($dump, $rows) = (dump_of($north), rows_of($north));
like(move_to('b', '--verify')->{output}, qr/verified: the same rows on both sides/, 'verified');
is(rows_of($south), $rows, 'the same rows');
# What the server prints of an expression it prints otherwise after the first dump, and never again.
my $second = dump_of($south);
is($south->safe_psql('postgres', "SELECT nextval('shard_1.down'), has_function_privilege('tenant', 'shard_1.twice(int)', 'EXECUTE'), has_column_privilege('re ader', 'shard_1.whole', 'b', 'UPDATE WITH GRANT OPTION')"), '70|f|t', 'sequences, privileges');
is($south->safe_psql('postgres', "SELECT count(*) > 0 FROM pg_stats WHERE schemaname = 'shard_1'"), 't', 'statistics are there at once');
is($south->safe_psql('postgres', 'INSERT INTO shard_1."Odd ""one"", {}" (r) VALUES (shard_1.span(100, 101)) RETURNING n, serial, note, status'), '21|21|touched|new', 'identity, serial, trigger and default go on');
$rows = rows_of($south);
move_to('a');
is(dump_of($north), $second, 'back: the same definitions, owners and privileges');
is(rows_of($north), $rows, '... the same rows');
sub without_printed { return join "\n", grep { !/CHECK|WHERE|ARRAY/ } split /\n/, $_[0]; }
is(without_printed($second), without_printed($dump), 'nor did the first move change them');

# What was kept is dropped by a command of its own, and never with what hangs on it.
my $guard = 'ALTER EVENT TRIGGER snowflake_move_guard';
$north->refuses('CREATE VIEW public.leftover AS SELECT * FROM shard_1_moved.base', { sqlstate => 55006, message => 'what was left of shard 1' }, 'nothing is hung on what was kept');
$north->safe_psql('postgres', "$guard DISABLE; CREATE VIEW public.leftover AS SELECT * FROM shard_1_moved.base; $guard ENABLE ALWAYS");
my $drop = $mover->run('--shard' => 1, '--from' => 'a', '--drop-source');
is($drop->{status}, 1, 'refused: something hangs on what was kept');
like($drop->{output}, qr/shard_1_moved is not any more what was moved/, '... it says so');
is($north->safe_psql('postgres', 'SELECT count(*) FROM public.leftover'), '2', '... and nothing is dropped');
$north->safe_psql('postgres', "$guard DISABLE; DROP VIEW public.leftover; CREATE FUNCTION public.of_mood(shard_1_moved.mood) RETURNS int LANGUAGE sql AS 'SELECT 1'; $guard ENABLE ALWAYS");
like($mover->run('--shard' => 1, '--from' => 'a', '--drop-source')->{output}, qr/shard_1_moved is not dropped, for something else hangs on it\n.*function public.of_mood/, 'what the comparison does not see, RESTRICT does');
is($north->safe_psql('postgres', 'SELECT count(*) FROM shard_1_moved.base'), '2', '... and nothing is dropped');
$north->safe_psql('postgres', 'DROP FUNCTION of_mood');
is($mover->run('--shard' => 1, '--from' => 'a', '--drop-source')->{status}, 0, 'dropped');
is($north->safe_psql('postgres', "SELECT to_regnamespace('shard_1_moved') IS NULL, to_regnamespace('shard_1') IS NOT NULL, count(*) FROM snowflake_fleet.moving"), 't|t|0', '... the kept one alone');
is($mover->run('--shard' => 1, '--from' => 'a', '--drop-source')->{status}, 1, 'nothing is left to drop');
is($mover->run('--shard' => 1, '--from' => 'b', '--drop-source')->{status}, 0, 'on the other server, too');

# A schema that is there already is taken if it is what the dump would make, and refused in everything else.
$south->safe_psql('postgres', dump_of($north));
is($mover->run('--shard' => 1, '--to' => 'b', '--check')->{status}, 0, 'the same schema is on the target: fine');
foreach my $alter ('ALTER TABLE shard_1.whole DISABLE ROW LEVEL SECURITY', 'DROP POLICY own ON shard_1.whole', 'DROP FUNCTION shard_1.listed', "ALTER TYPE shard_1.mood ADD VALUE 'so so'", 'GRANT INSERT ON shard_1.base TO tenant',
	'ALTER TABLE shard_1.base OWNER TO tenant', 'CREATE OR REPLACE FUNCTION shard_1.twice(int) RETURNS int LANGUAGE sql IMMUTABLE AS \'SELECT 3 * $1\'', 'ALTER TABLE shard_1."Odd ""one"", {}" ENABLE ALWAYS TRIGGER touch',
	"ALTER TABLE shard_1.\"Odd \"\"one\"\", {}\" ALTER status SET DEFAULT 'old'")
{
	$south->safe_psql('postgres', "DROP SCHEMA shard_1 CASCADE"); $south->safe_psql('postgres', dump_of($north)); $south->safe_psql('postgres', $alter);
	like($mover->run('--shard' => 1, '--to' => 'b', '--check')->{output}, qr/that is not as that of the source/, "refused on the target: $alter");
}
$south->safe_psql('postgres', 'DROP SCHEMA shard_1 CASCADE');
# Default privileges of the target would give what the source did not.
$south->safe_psql('postgres', 'ALTER DEFAULT PRIVILEGES GRANT DELETE ON TABLES TO tenant');
like($mover->run('--shard' => 2, '--to' => 'b', '--dry-run')->{output}, qr/is not as the source's.*\n(?s:.*)only on the target: .*granted DELETE to tenant/, 'a dry run makes the schema, and compares');
like($mover->run('--shard' => 2, '--to' => 'b')->{output}, qr/only on the target: .*granted DELETE to tenant/, 'so does the move');
is($mover->run('--shard' => 2, '--to' => 'b', '--abort')->{status}, 0, 'taken back');
is($mover->leftovers, '', 'nothing is left over');
$south->safe_psql('postgres', 'ALTER DEFAULT PRIVILEGES REVOKE DELETE ON TABLES FROM tenant');
like($mover->run('--shard' => 2, '--to' => 'b', '--dry-run')->{output}, qr/would copy table users(?s:.*)shard 2 can be moved/, 'a dry run');
is($south->safe_psql('postgres', "SELECT to_regnamespace('shard_2') IS NULL, count(*) FROM snowflake_fleet.moving"), 't|0', '... leaves nothing');

# A bigint key that is no id.
$north->safe_psql('postgres', 'CREATE TABLE shard_3.tweets (id bigint PRIMARY KEY); INSERT INTO shard_3.tweets VALUES (1985000000000000000)');
my $not = $mover->run('--shard' => 3, '--to' => 'b');
like($not->{output}, qr/The greatest value of tweets\.id, 1985000000000000000, would be an id of the future(?s:.*)--not-ids tweets\.id/, 'refused at once: a key that is no id');
is($mover->leftovers, '', '... and nothing is begun');
like($mover->run('--shard' => 3, '--to' => 'b', '--not-ids' => 'tweets.id', '--not-ids' => 'no.such')->{output}, qr/--not-ids no\.such names no column(?!.*tweets)/s, 'what is named has to be there');
# Wherever ids are: of a domain, in a key of several columns, without a key, filled by a trigger; as a shell wants its name.
my $tomorrow = q{snowflake.max_id(now() + interval '1 day')};
foreach my $case (
	[ 'a domain', "'\"Ids\".\"Id\"'", 'CREATE DOMAIN shard_3.ids AS bigint; CREATE TABLE shard_3."Ids" ("Id" shard_3.ids PRIMARY KEY)' ],
	[ 'a key of several columns', 'ids\.id', 'CREATE TABLE shard_3.ids (id bigint, x int, PRIMARY KEY (id, x))' ],
	[ 'no key', 'ids\.id', 'CREATE TABLE shard_3.ids (id bigint DEFAULT snowflake.next_id(3), x int PRIMARY KEY); CREATE INDEX ON shard_3.ids (id)' ],
	[ 'a trigger', 'ids\.id', 'CREATE TABLE shard_3.ids (x bigint, id bigint UNIQUE NOT NULL); ALTER TABLE shard_3.ids REPLICA IDENTITY USING INDEX ids_id_key; CREATE TRIGGER t BEFORE INSERT ON shard_3.ids FOR EACH ROW EXECUTE FUNCTION snowflake.set_id(\'x\')' ])
{
	my ($what, $name, $make) = @$case;
	my ($table, $column) = $make =~ /"Ids"/ ? ('shard_3."Ids"', '"Id"') : ('shard_3.ids', 'id');
	my $rest = $make =~ /x int/ ? ', x' : '';
	$north->safe_psql('postgres', "$make; INSERT INTO $table ($column$rest) SELECT $tomorrow" . ($rest ? ', 1' : ''));
	like($mover->run('--shard' => 3, '--to' => 'b', '--check', '--not-ids' => 'tweets.id')->{output},
		qr/The greatest value of \S+, \d+, would be an id of the future.* say --not-ids $name\./, "an id of the future in $what");
	$north->safe_psql('postgres', "UPDATE $table SET $column = -5");
	is($mover->run('--shard' => 3, '--to' => 'b', '--check', '--not-ids' => 'tweets.id')->{status}, 0, '... and a number below zero is none');
	$north->safe_psql('postgres', "DROP TABLE $table; DROP DOMAIN IF EXISTS shard_3.ids");
}
is($mover->run('--shard' => 3, '--to' => 'b', '--not-ids' => 'tweets.id')->{status}, 0, 'named, it moves');
is($south->safe_psql('postgres', 'SELECT snowflake.time_of(snowflake.next_id(3)) < now() + interval \'1 min\' FROM shard_3.tweets'), 't', '... and the target mints as before');

# --list, and a difference that only hashes show.
$north->safe_psql('postgres', "INSERT INTO shard_4.users (name) VALUES ('x')");
$mover->run('--shard' => 4, '--to' => 'b', '--until' => 'copied');
like($mover->run('--list')->{output}, qr/server a: shard 4, schema shard_4, from here to b: copying .*its slot holds .* of WAL, no program runs\n(?s:.*)server b: shard 4, schema shard_4, here from a: arriving/, '--list');
$south->safe_psql('postgres', "UPDATE shard_4.users SET name = 'y'");
my $differs = $mover->run('--shard' => 4, '--to' => 'b', '--verify');
is($differs->{status}, 1, 'rows that differ are found');
like($differs->{output}, qr/table users differs: 1 rows with hash .* on the source, 1 with/, '... and said');
is($north->safe_psql('postgres', "INSERT INTO shard_4.users (name) VALUES ('on') RETURNING 1"), '1', '... the source takes writes');
is($mover->run('--shard' => 4, '--to' => 'b', '--abort')->{status}, 0, '... taken back');

done_testing();
