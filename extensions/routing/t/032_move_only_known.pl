# Only what is known may move: everything else is refused by name, and nothing is begun.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use Snowflake::Fleet;
use Snowflake::Mover;
use Snowflake::Node;
use Test::More;

my $fleet = Snowflake::Fleet->new({ a => [ 0 .. 2 ], b => [3] });
my $mover = Snowflake::Mover->new($fleet);
my ($north, $south) = map { $fleet->node($_) } 'a', 'b';
$_->safe_psql('postgres', 'CREATE ROLE tenant LOGIN; CREATE EXTENSION citext SCHEMA public; GRANT CREATE ON DATABASE postgres TO tenant') foreach $north, $south;

# Obstacles to a move: the sentence that names one, and how it is taken away again.
my $f = "CREATE FUNCTION shard_1.f() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1'";
my $mood = "CREATE TYPE shard_1.mood AS ENUM ('well')";
my @refused = (
	[ 'column public.diary.m', 'column m of table public.diary is outside of the schema and uses type shard_1.mood', "$mood; CREATE TABLE diary (m shard_1.mood)", 'DROP TABLE diary; DROP TYPE shard_1.mood' ],
	[ 'a column of a row type', 'table public.notes is outside of the schema and uses type shard_1.users|column u of table public.notes is outside of the schema and uses type shard_1.users', 'CREATE TABLE notes (u shard_1.users)', 'DROP TABLE notes' ],
	[ 'a generated column', 'default value for column b of table public.sums is outside of the schema and uses function shard_1.f\(\)', "$f; CREATE TABLE sums (a int, b int GENERATED ALWAYS AS (shard_1.f()) STORED)", 'DROP TABLE sums; DROP FUNCTION shard_1.f' ],
	[ 'a default', 'default value for column a of table public.counts is outside of the schema and uses shard_1.numbers', "CREATE SEQUENCE shard_1.numbers; CREATE TABLE counts (a bigint DEFAULT nextval('shard_1.numbers'))", 'DROP TABLE counts; DROP SEQUENCE shard_1.numbers' ],
	[ 'a trigger', 'trigger t on table public.outer_one is outside of the schema and uses function shard_1.note\(\)',
	  'CREATE TABLE outer_one (); CREATE FUNCTION shard_1.note() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$; CREATE TRIGGER t AFTER INSERT ON outer_one EXECUTE FUNCTION shard_1.note()',
	  'DROP TABLE outer_one; DROP FUNCTION shard_1.note' ],
	[ 'a function with a parsed body', 'function public.names\(\) is outside of the schema and uses shard_1.users', 'CREATE FUNCTION names() RETURNS SETOF text LANGUAGE sql BEGIN ATOMIC SELECT name FROM shard_1.users; END', 'DROP FUNCTION names' ],
	[ 'a publication', 'Publication cdc publishes its tables', 'CREATE PUBLICATION cdc FOR TABLE shard_1.users', 'DROP PUBLICATION cdc' ],
	[ 'a publication of the schema', 'Publication cdc publishes its tables', 'CREATE PUBLICATION cdc FOR TABLES IN SCHEMA shard_1', 'DROP PUBLICATION cdc' ],
	[ 'a publication of everything', 'Publication cdc publishes its tables', 'CREATE PUBLICATION cdc FOR ALL TABLES', 'DROP PUBLICATION cdc' ],
	[ 'a cast', 'cast from shard_1.mood to integer is outside of the schema', "$mood; CREATE FUNCTION public.of_mood(shard_1.mood) RETURNS integer LANGUAGE sql AS 'SELECT 1'; CREATE CAST (shard_1.mood AS integer) WITH FUNCTION of_mood(shard_1.mood)",
	  'DROP CAST (shard_1.mood AS integer); DROP FUNCTION of_mood; DROP TYPE shard_1.mood' ],
	[ 'an event trigger', 'event trigger watch is outside of the schema', 'CREATE FUNCTION shard_1.watch() RETURNS event_trigger LANGUAGE plpgsql AS $$BEGIN END$$; CREATE EVENT TRIGGER watch ON ddl_command_end EXECUTE FUNCTION shard_1.watch()',
	  'DROP EVENT TRIGGER watch; DROP FUNCTION shard_1.watch' ],
	[ 'a default from a sequence outside', 'default value for column number of table shard_1.users uses sequence public.numbers, which is outside', "CREATE SEQUENCE public.numbers; ALTER TABLE shard_1.users ADD number bigint DEFAULT nextval('public.numbers')",
	  'ALTER TABLE shard_1.users DROP number; DROP SEQUENCE public.numbers' ],
	[ 'a function outside', 'default value for column n of table shard_1.users uses function public.one\(\), which is outside', "CREATE FUNCTION one() RETURNS int LANGUAGE sql AS 'SELECT 1'; ALTER TABLE shard_1.users ADD n int DEFAULT one()",
	  'ALTER TABLE shard_1.users DROP n; DROP FUNCTION one' ],
	[ 'a type outside', 'column m of table shard_1.users uses type public.mood, which is outside', "CREATE TYPE public.mood AS ENUM ('well'); ALTER TABLE shard_1.users ADD m public.mood", 'ALTER TABLE shard_1.users DROP m; DROP TYPE public.mood' ],
	[ 'ENABLE ALWAYS', 'Trigger audit of table shard_1.users is ENABLE ALWAYS',
	  'CREATE FUNCTION shard_1.audit() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$; CREATE TRIGGER audit AFTER INSERT ON shard_1.users FOR EACH ROW EXECUTE FUNCTION shard_1.audit(); ALTER TABLE shard_1.users ENABLE ALWAYS TRIGGER audit',
	  'DROP TRIGGER audit ON shard_1.users; DROP FUNCTION shard_1.audit' ],
	[ 'ENABLE REPLICA', 'Trigger audit of table shard_1.users is ENABLE REPLICA',
	  'CREATE FUNCTION shard_1.audit() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$; CREATE TRIGGER audit AFTER INSERT ON shard_1.users FOR EACH ROW EXECUTE FUNCTION shard_1.audit(); ALTER TABLE shard_1.users ENABLE REPLICA TRIGGER audit',
	  'DROP TRIGGER audit ON shard_1.users; DROP FUNCTION shard_1.audit' ],
	[ 'a rule that is ENABLE ALWAYS', 'Rule r of shard_1.photos is ENABLE ALWAYS', 'CREATE RULE r AS ON DELETE TO shard_1.photos DO ALSO NOTHING; ALTER TABLE shard_1.photos ENABLE ALWAYS RULE r', 'DROP RULE r ON shard_1.photos' ],
	[ 'a function of an ordinary role in an index', 'Function shard_1.f\(bigint\) belongs to role tenant, and the target would call it as a superuser for index shard_1.by_f',
	  "CREATE FUNCTION shard_1.f(bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 1'; ALTER FUNCTION shard_1.f OWNER TO tenant; CREATE INDEX by_f ON shard_1.photos (shard_1.f(id))", 'DROP INDEX shard_1.by_f; DROP FUNCTION shard_1.f' ],
	[ 'one that another calls, in a check', 'Function shard_1.f\(\) belongs to role tenant, and the target would call it as a superuser for Constraint fine of table shard_1.photos',
	  "$f; ALTER FUNCTION shard_1.f OWNER TO tenant; CREATE FUNCTION shard_1.g() RETURNS int LANGUAGE sql IMMUTABLE BEGIN ATOMIC SELECT shard_1.f(); END; ALTER TABLE shard_1.photos ADD CONSTRAINT fine CHECK (shard_1.g() = 1)",
	  'ALTER TABLE shard_1.photos DROP CONSTRAINT fine; DROP FUNCTION shard_1.g; DROP FUNCTION shard_1.f' ],
	[ 'an owner who cannot reach the table', 'Role tenant owns table shard_1.users, and rows are copied as its owner, who has no USAGE', 'ALTER TABLE shard_1.users OWNER TO tenant', 'ALTER TABLE shard_1.users OWNER TO postgres' ],
	[ 'an owner who cannot write to it', 'Role tenant owns table shard_1.users, .* who has taken privileges on it', 'GRANT USAGE ON SCHEMA shard_1 TO tenant; ALTER TABLE shard_1.users OWNER TO tenant; REVOKE INSERT ON shard_1.users FROM tenant',
	  'GRANT INSERT ON shard_1.users TO tenant; ALTER TABLE shard_1.users OWNER TO postgres; REVOKE USAGE ON SCHEMA shard_1 FROM tenant' ],
	[ 'a function in C', 'Function shard_1.c\(text\) is in language c', q{CREATE FUNCTION shard_1.c(text) RETURNS int LANGUAGE c IMMUTABLE STRICT AS '$libdir/citext', 'citext_hash'}, 'DROP FUNCTION shard_1.c' ],
	[ 'a text search configuration', 'text search configuration shard_1.plain is of a kind that is not known here', 'CREATE TEXT SEARCH CONFIGURATION shard_1.plain (COPY = simple)', 'DROP TEXT SEARCH CONFIGURATION shard_1.plain' ],
	[ 'a member of an extension', 'function shard_1.member\(\) belongs to extension citext', 'CREATE FUNCTION shard_1.member() RETURNS int LANGUAGE sql AS \'SELECT 1\'; ALTER EXTENSION citext ADD FUNCTION shard_1.member()', 'ALTER EXTENSION citext DROP FUNCTION shard_1.member(); DROP FUNCTION shard_1.member' ],
	[ 'ids that no index finds', 'Column orders\.id mints, and no B-tree index begins with it(?s:.*)--not-ids orders\.id\.',
	  'CREATE TABLE shard_1.orders (tenant int, id bigint NOT NULL DEFAULT snowflake.next_id(1), PRIMARY KEY (tenant, id)); CREATE INDEX ON shard_1.orders USING brin (id); CREATE INDEX ON shard_1.orders (id) WHERE tenant > 0', 'DROP TABLE shard_1.orders' ],
	[ 'statements that the source ends', 'The source ends what takes longer than statement_timeout = 10min, the copy of a table as well: run ALTER ROLE \w+ IN DATABASE postgres SET statement_timeout = 0',
	  "ALTER DATABASE postgres SET statement_timeout = '10min'", 'ALTER DATABASE postgres RESET statement_timeout' ],
	[ 'a role that the target lacks', 'The target has no role only_here, which the schema needs', 'CREATE ROLE only_here; GRANT SELECT ON shard_1.users TO only_here', 'DROP OWNED BY only_here; DROP ROLE only_here' ],
	[ 'an extension that the target lacks', 'The target has no extension hstore, which the schema needs', 'CREATE EXTENSION hstore; ALTER TABLE shard_1.users ADD h hstore', 'ALTER TABLE shard_1.users DROP h; DROP EXTENSION hstore' ]);
foreach my $case (@refused)
{
	my ($what, $sentence, $make, $unmake) = @$case;
	$north->safe_psql('postgres', $make);
	my $run = $mover->run('--shard' => 1, '--to' => 'b');
	is($run->{status}, 1, "refused: $what");
	like($run->{output}, qr/shard 1 cannot be moved\n(?s:.*)(?:$sentence)/, '... by name');
	is($mover->leftovers, '', '... and nothing is begun') if $what =~ /ALWAYS|cast/;
	$north->safe_psql('postgres', $unmake);
}
$north->safe_psql('postgres', "ALTER DATABASE postgres SET statement_timeout = '10min'; ALTER ROLE CURRENT_USER IN DATABASE postgres SET statement_timeout = '0 min'");
is($mover->run('--shard' => 1, '--to' => 'b', '--check')->{status}, 0, 'without them it can be moved: the nearest of the settings counts');
$north->safe_psql('postgres', 'ALTER DATABASE postgres RESET statement_timeout; ALTER ROLE CURRENT_USER IN DATABASE postgres RESET statement_timeout');

# Names are no statements: those of a role that may create in its schema.
$north->safe_psql('postgres', <<~'SQL');
	GRANT CREATE, USAGE ON SCHEMA shard_2 TO tenant;
	SET ROLE tenant;
	CREATE SEQUENCE shard_2."x$do$;ALTER ROLE tenant SUPERUSER;--";
	CREATE SEQUENCE shard_2."%s '; ALTER ROLE tenant SUPERUSER; --";
	SELECT nextval('shard_2."x$do$;ALTER ROLE tenant SUPERUSER;--"') FROM generate_series(1, 41);
	CREATE TABLE shard_2."a, b; {} %(x)s" (id int PRIMARY KEY, "c"", %s" text);
	INSERT INTO shard_2."a, b; {} %(x)s" VALUES (1, 'one');
	SQL
my $moved = $mover->run('--shard' => 2, '--to' => 'b');
is($moved->{status}, 0, 'names that look like statements move') or diag($moved->{output});
is($south->safe_psql('postgres', "SELECT rolsuper FROM pg_roles WHERE rolname = 'tenant'"), 'f', '... and are none');
is($south->safe_psql('postgres', q{SELECT nextval('shard_2."x$do$;ALTER ROLE tenant SUPERUSER;--"')}), '42', '... a sequence goes on');
is($south->safe_psql('postgres', 'SELECT * FROM shard_2."a, b; {} %(x)s"'), '1|one', '... a table has its rows');

# No password where others read: of all forms, and it is not repeated.
foreach my $conninfo ("host=x password=hunter2", "host=x sslpassword='hunter2'", 'postgresql://u:hunter2@x/db', 'postgresql://u@x/db?password=hunter2', "host='x password=hunter2", 'postgresql://u:hunter2@x:bad:port/db')
{
	my $run = $mover->run_without_map('--shard' => 0, '--from' => $conninfo, '--to' => $fleet->conninfo('b'));
	isnt($run->{status}, 0, 'refused: a password');
	unlike($run->{output}, qr/hunter|Traceback/, '... and it is not repeated');
	$run = $mover->run_without_map('--shard' => 0, '--from' => $fleet->conninfo('a'), '--to' => $fleet->conninfo('b'), '--source-for-target' => $conninfo);
	isnt($run->{status}, 0, 'refused for the target');
	unlike($run->{output}, qr/hunter|Traceback/, '... and it is not repeated');
}
like($mover->run_without_map('--version')->{output}, qr/^snowflake-move-shard \d+\.\d+\.\d+$/, '--version');
is($mover->run_without_map('--shard' => $_, '--from' => 'x', '--to' => 'y')->{status}, 2, "not a shard: $_") foreach '-1', 'one', '';
is($mover->run('--shard' => 0, '--to' => 'nowhere')->{status}, 1, 'a server that the map does not have');

done_testing();
