# Tests that the move of a schema is refused if the schema contains an object that create_shards() does not create. The
# error message must name the object that prevents the move.

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
$_->safe_psql('postgres', 'CREATE ROLE tenant LOGIN; CREATE EXTENSION citext; GRANT CREATE ON DATABASE postgres TO tenant') foreach $north, $south;
$south->safe_psql('postgres', q{CREATE TYPE same AS ENUM ('a'); CREATE TYPE other AS ENUM ('a', 'b'); CREATE TABLE looked_up (id int PRIMARY KEY); INSERT INTO looked_up VALUES (1); CREATE DOMAIN counted AS integer DEFAULT 2});
$north->safe_psql('postgres', q{CREATE TYPE same AS ENUM ('a'); CREATE TYPE other AS ENUM ('a', 'c'); CREATE TABLE looked_up (id int PRIMARY KEY); INSERT INTO looked_up VALUES (2); CREATE DOMAIN counted AS integer DEFAULT 1});

# Lists objects that prevent a move, each with the expected message and the statements that create and drop the object.
my $mood = "CREATE TYPE shard_1.mood AS ENUM ('well')";
my @refused = (
	[ 'no primary key', 'Table shard_1.photos needs a primary key that is not deferrable', 'ALTER TABLE shard_1.photos DROP CONSTRAINT photos_pkey', 'ALTER TABLE shard_1.photos ADD PRIMARY KEY (id)' ],
	[ 'a deferrable one', 'Table shard_1.photos needs a primary key that is not deferrable', 'ALTER TABLE shard_1.photos DROP CONSTRAINT photos_pkey, ADD PRIMARY KEY (id) DEFERRABLE', 'ALTER TABLE shard_1.photos DROP CONSTRAINT photos_pkey, ADD PRIMARY KEY (id)' ],
	[ 'an unlogged table', 'Table shard_1.photos is unlogged', 'ALTER TABLE shard_1.photos SET UNLOGGED', 'ALTER TABLE shard_1.photos SET LOGGED' ],
	[ 'row security', 'Table shard_1.photos has row security', 'ALTER TABLE shard_1.photos ENABLE ROW LEVEL SECURITY', 'ALTER TABLE shard_1.photos DISABLE ROW LEVEL SECURITY' ],
	[ 'a policy', 'policy p on table shard_1.photos depends on table shard_1.photos', 'CREATE POLICY p ON shard_1.photos USING (true)', 'DROP POLICY p ON shard_1.photos' ],
	[ 'a generated column', 'Table shard_1.photos has the generated column g', 'ALTER TABLE shard_1.photos ADD g int GENERATED ALWAYS AS (1) STORED', 'ALTER TABLE shard_1.photos DROP g' ],
	[ 'a child table', 'Table shard_1.users is a parent or child in table inheritance, or is a partition', 'CREATE TABLE child () INHERITS (shard_1.users)', 'DROP TABLE child' ],
	[ 'a partitioned table', 'table shard_1.parts is in the schema, but cannot be moved', 'CREATE TABLE shard_1.parts (id int PRIMARY KEY) PARTITION BY HASH (id)', 'DROP TABLE shard_1.parts' ],
	[ 'a view', 'view shard_1.v is in the schema, but cannot be moved', 'CREATE VIEW shard_1.v AS SELECT 1', 'DROP VIEW shard_1.v' ],
	[ 'a function', 'function shard_1.f\(\) is in the schema, but cannot be moved', "CREATE FUNCTION shard_1.f() RETURNS int LANGUAGE sql AS 'SELECT 1'", 'DROP FUNCTION shard_1.f' ],
	[ 'an enum of the schema', 'type shard_1.mood is in the schema, but cannot be moved', $mood, 'DROP TYPE shard_1.mood' ],
	[ 'privileges by default', 'default privileges .* is in the schema, but cannot be moved', 'ALTER DEFAULT PRIVILEGES IN SCHEMA shard_1 GRANT SELECT ON TABLES TO tenant', 'ALTER DEFAULT PRIVILEGES IN SCHEMA shard_1 REVOKE SELECT ON TABLES FROM tenant' ],
	[ 'money', 'Column shard_1.photos.price has type money', 'ALTER TABLE shard_1.photos ADD price money', 'ALTER TABLE shard_1.photos DROP price' ],
	[ 'large objects', 'Column shard_1.photos.picture has type oid', 'ALTER TABLE shard_1.photos ADD picture oid[]', 'ALTER TABLE shard_1.photos DROP picture' ],
	[ 'ENABLE ALWAYS', 'Table shard_1.users has the trigger audit, which is ENABLE ALWAYS or REPLICA',
	  'CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$; CREATE TRIGGER audit AFTER INSERT ON shard_1.users FOR EACH ROW EXECUTE FUNCTION audit(); ALTER TABLE shard_1.users ENABLE ALWAYS TRIGGER audit',
	  'DROP TRIGGER audit ON shard_1.users; DROP FUNCTION audit' ],
	[ 'the name of a fence', 'Table shard_1.users has the trigger snowflake_move, which .* has the same name as a fence',
	  'CREATE TRIGGER snowflake_move BEFORE UPDATE ON shard_1.users FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()', 'DROP TRIGGER snowflake_move ON shard_1.users' ],
	[ 'a domain with another default', 'The domain public.counted differs between the servers: on the source it is integer DEFAULT 1, on the target integer DEFAULT 2', 'ALTER TABLE shard_1.users ADD c counted', 'ALTER TABLE shard_1.users DROP c' ],
	[ 'another shard', 'default value for column id of table shard_1.users mints or compares another shard', 'ALTER TABLE shard_1.users ALTER id SET DEFAULT snowflake.next_id(2)', 'ALTER TABLE shard_1.users ALTER id SET DEFAULT snowflake.next_id(1)' ],
	[ 'another form', 'default value for column id of table shard_1.users mints or compares another shard, or in another form', 'ALTER TABLE shard_1.users ALTER id SET DEFAULT snowflake.next_id(1) + 0', 'ALTER TABLE shard_1.users ALTER id SET DEFAULT snowflake.next_id(1)' ],
	[ 'a sequence outside', 'default value for column number of table shard_1.users uses sequence public.numbers, which cannot be moved', "CREATE SEQUENCE numbers; ALTER TABLE shard_1.users ADD number bigint DEFAULT nextval('numbers')",
	  'ALTER TABLE shard_1.users DROP number; DROP SEQUENCE numbers' ],
	[ 'a function outside', 'constraint good on table shard_1.users uses function public.good\(text\), which cannot be moved', "CREATE FUNCTION good(text) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true'; ALTER TABLE shard_1.users ADD CONSTRAINT good CHECK (good(name))",
	  'ALTER TABLE shard_1.users DROP CONSTRAINT good; DROP FUNCTION good' ],
	[ 'a function in an index', 'index shard_1.by_f uses function public.f\(bigint\), which cannot be moved', "CREATE FUNCTION f(bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 1'; CREATE INDEX by_f ON shard_1.photos (f(id))", 'DROP INDEX shard_1.by_f; DROP FUNCTION f' ],
	[ 'what an ordinary role has put into an extension', 'index shard_1.by_g uses function public.g\(bigint\), which cannot be moved', "CREATE FUNCTION g(bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 1'; ALTER EXTENSION citext ADD FUNCTION g(bigint); ALTER FUNCTION g OWNER TO tenant; CREATE INDEX by_g ON shard_1.photos (g(id))",
	  'DROP INDEX shard_1.by_g; ALTER EXTENSION citext DROP FUNCTION g(bigint); DROP FUNCTION g' ],
	[ 'a range', 'column r of table shard_1.users uses type public.span, which cannot be moved', 'CREATE TYPE span AS RANGE (subtype = int); ALTER TABLE shard_1.users ADD r span', 'ALTER TABLE shard_1.users DROP r; DROP TYPE span' ],
	[ 'a shared table that changes rows', 'Foreign key k of table shard_1.users changes rows when the shared table public.looked_up is changed', 'ALTER TABLE shard_1.users ADD k int, ADD CONSTRAINT k FOREIGN KEY (k) REFERENCES looked_up ON DELETE CASCADE', 'ALTER TABLE shard_1.users DROP k' ],
	[ 'a shared table with other rows', 'A foreign key refers to table public.looked_up, which has different rows on source and target', 'ALTER TABLE shard_1.users ADD k int REFERENCES looked_up', 'ALTER TABLE shard_1.users DROP k' ],
	[ 'an enum with other labels', q{The enum public.other differs between the servers: on the source it is 'a', 'c', on the target 'a', 'b'}, 'ALTER TABLE shard_1.users ADD o other', 'ALTER TABLE shard_1.users DROP o' ],
	[ 'an enum that the target lacks', 'The schema uses enum public.mood, which does not exist on the target', "CREATE TYPE mood AS ENUM ('a'); ALTER TABLE shard_1.users ADD m mood[]", 'ALTER TABLE shard_1.users DROP m; DROP TYPE mood' ],
	[ 'a role that the target lacks', 'The schema uses role only_here, which does not exist on the target', 'CREATE ROLE only_here; GRANT SELECT ON shard_1.users TO only_here', 'DROP OWNED BY only_here; DROP ROLE only_here' ],
	[ 'an extension that the target lacks', ', and nothing was changed: type "public.hstore" does not exist', 'CREATE EXTENSION hstore; ALTER TABLE shard_1.users ADD h hstore', 'ALTER TABLE shard_1.users DROP h; DROP EXTENSION hstore' ],
	[ 'a foreign key from outside', 'constraint likes_photo_id_fkey on table public.likes depends on ', 'CREATE TABLE likes (photo_id bigint REFERENCES shard_1.photos)', 'DROP TABLE likes' ],
	[ 'a view outside', 'rule _RETURN on view public.recent depends on table shard_1.users', 'CREATE VIEW recent AS SELECT name FROM shard_1.users', 'DROP VIEW recent' ],
	[ 'a column of a row type', 'column u of table public.notes depends on type shard_1.users', 'CREATE TABLE notes (u shard_1.users)', 'DROP TABLE notes' ],
	[ 'a publication', 'publication of table shard_1.users in publication cdc depends on', 'CREATE PUBLICATION cdc FOR TABLE shard_1.users', 'DROP PUBLICATION cdc' ],
	[ 'a publication of the schema', 'publication of schema shard_1 in publication cdc is in the schema', 'CREATE PUBLICATION cdc FOR TABLES IN SCHEMA shard_1', 'DROP PUBLICATION cdc' ],
	[ 'a publication of everything', 'Publication cdc is FOR ALL TABLES', 'CREATE PUBLICATION cdc FOR ALL TABLES', 'DROP PUBLICATION cdc' ],
	[ 'a subscription', 'Table shard_1.users is filled by subscription filled', q{CREATE SUBSCRIPTION filled CONNECTION 'dbname=none' PUBLICATION none WITH (connect = false); INSERT INTO pg_subscription_rel SELECT oid, 'shard_1.users'::regclass, 'r' FROM pg_subscription},
	  'DELETE FROM pg_subscription_rel; ALTER SUBSCRIPTION filled SET (slot_name = NONE); DROP SUBSCRIPTION filled' ],
	[ 'a prepared transaction', 'Prepared transaction later of database postgres is open', "BEGIN; INSERT INTO shard_1.users (name) VALUES ('prepared'); PREPARE TRANSACTION 'later'", "ROLLBACK PREPARED 'later'" ]);
foreach my $case (@refused)
{
	my ($what, $sentence, $make, $unmake) = @$case;
	$north->safe_psql('postgres', $make);
	my $run = $mover->run('--shard' => 1, '--to' => 'b', '--check');
	is($run->{status}, 1, "a move is refused because of $what");
	like($run->{output}, qr/(?:shard 1 cannot be moved|the target could not be prepared)(?s:.*)(?:$sentence)/, "the message names $what");
	like($run->{output}, qr/Other ways to move it are Citus/, 'the message names other ways to move the shard') if $what eq 'a view';
	if ($what eq 'an extension that the target lacks') { is($mover->run('--shard' => 1, '--to' => 'b')->{status}, 1, "the move without --check is also refused because of $what"); is($mover->leftovers, '', "nothing of the refused move remains"); }
	$north->safe_psql('postgres', $unmake);
}
$south->safe_psql('postgres', 'CREATE SCHEMA shard_1');
like($mover->run('--shard' => 1, '--to' => 'b')->{output}, qr/the target could not be prepared, and nothing was changed: schema "shard_1" already exists/, 'a move is refused if the target has a schema of this name');
$south->safe_psql('postgres', 'DROP SCHEMA shard_1');
like($mover->run_without_map('--shard' => 4, '--from' => $fleet->conninfo('a'), '--to' => $fleet->conninfo('b'))->{output}, qr/Schema shard_4 does not exist, or has no tables\./, 'a move is refused if the source has no schema of the shard');
is($mover->run('--shard' => 1, '--to' => 'b', '--check')->{status}, 0, 'when these objects are removed, the shard can be moved');

# An ordinary role has created a function on the target with the name of an extension's function. If
# snowflake-move-shard calls a function of an ordinary role, the function must not run as a superuser.
$north->safe_psql('postgres', q{CREATE EXTENSION fuzzystrmatch; ALTER TABLE shard_1.users ADD CONSTRAINT sounds CHECK (soundex('x') <> name)});
$south->safe_psql('postgres', <<~'SQL');
	GRANT CREATE ON SCHEMA public TO tenant;
	SET ROLE tenant;
	CREATE FUNCTION public.soundex(text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$
	BEGIN
	  RAISE EXCEPTION 'as %, superuser %', current_user, (SELECT rolsuper FROM pg_roles WHERE rolname = current_user);
	END $$;
	SQL
like($mover->run('--shard' => 1, '--to' => 'b', @$_)->{output}, qr/the target could not be prepared, and nothing was changed: as snowflake_move_\d+_1, superuser f/, 'a function with the same name on the target runs as the role of the move')
  foreach ['--check'], [];
is($mover->leftovers, '', 'nothing remains of the move that the function stopped');
$south->safe_psql('postgres', q{CREATE OR REPLACE FUNCTION public.soundex(text) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT $1'});
like($mover->run('--shard' => 1, '--to' => 'b')->{output}, qr/On the target: constraint sounds on table shard_1.users uses function public.soundex\(text\), which cannot be moved/, 'a constraint that uses a function with the same name on the target is refused');
$south->safe_psql('postgres', 'DROP FUNCTION public.soundex(text)');
$north->safe_psql('postgres', 'ALTER TABLE shard_1.users DROP CONSTRAINT sounds; DROP EXTENSION fuzzystrmatch');

# A move between databases with different encodings must be refused before rows are copied.
$south->safe_psql('postgres', "CREATE DATABASE bytes ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0");
$south->safe_psql('bytes', 'CREATE EXTENSION snowflake_shards CASCADE; CREATE EXTENSION snowflake_routing CASCADE');
like($mover->run_without_map('--shard' => 0, '--from' => $fleet->conninfo('a'), '--to' => $fleet->conninfo('b') =~ s/dbname=postgres/dbname=bytes/r, '--check')->{output},
	qr/The encoding of the source database is UTF8, and that of the target database SQL_ASCII/, 'a move is refused if only one side has encoding SQL_ASCII');

# Names of objects must not inject SQL statements into snowflake-move-shard.
$north->safe_psql('postgres', <<~'SQL');
	ALTER TABLE shard_2.users ADD CONSTRAINT odd CHECK (name <> 'a TRIGGER snowflake_move');
	CREATE TRIGGER snowflake_move_log BEFORE UPDATE ON shard_2.users FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
	GRANT CREATE, USAGE ON SCHEMA shard_2 TO tenant;
	SET ROLE tenant;
	CREATE SEQUENCE shard_2."x$do$;ALTER ROLE tenant SUPERUSER;--";
	CREATE SEQUENCE shard_2."%s '; ALTER ROLE tenant SUPERUSER; --";
	SELECT nextval('shard_2."x$do$;ALTER ROLE tenant SUPERUSER;--"') FROM generate_series(1, 41);
	CREATE TABLE shard_2."a, b; {} %(x)s" (id int PRIMARY KEY, "c"", %s" text DEFAULT E'\';ALTER ROLE tenant SUPERUSER;--');
	COMMENT ON TABLE shard_2."a, b; {} %(x)s" IS E'\'; ALTER ROLE tenant SUPERUSER; --';
	INSERT INTO shard_2."a, b; {} %(x)s" VALUES (1, 'one');
	SQL
my $moved = $mover->run('--shard' => 2, '--to' => 'b');
is($moved->{status}, 0, 'a schema with names that look like statements is moved') or diag($moved->{output});
is($south->safe_psql('postgres', "SELECT rolsuper FROM pg_roles WHERE rolname = 'tenant'"), 'f', 'the names that look like statements were not run');
is($south->safe_psql('postgres', q{SELECT nextval('shard_2."x$do$;ALTER ROLE tenant SUPERUSER;--"')}), '42', 'a sequence with such a name continues on the target');
is($south->safe_psql('postgres', 'SELECT * FROM shard_2."a, b; {} %(x)s"'), '1|one', 'a table with such a name has its rows on the target');
is($south->safe_psql('postgres', "SELECT count(*) FROM pg_constraint WHERE conname = 'odd' UNION ALL SELECT count(*) FROM pg_trigger WHERE tgname = 'snowflake_move_log'"), "1\n1", 'a constraint and a trigger with names like those of a fence exist on the target');

# The owner of a domain may change the domain's check while rows are copied. The check of the domain must not run as a
# superuser.
$_->safe_psql('postgres', 'CREATE TABLE callers (name text, super boolean); GRANT INSERT ON callers TO PUBLIC; CREATE DOMAIN fine AS text; ALTER DOMAIN fine OWNER TO tenant') foreach $north, $south;
$north->safe_psql('postgres', q{ALTER TABLE shard_1.users ADD f fine; CREATE INDEX ON shard_1.users ((name::fine)); INSERT INTO shard_1.users (name, f) SELECT 'x', 'x' FROM generate_series(1, 10)});
$south->safe_psql('postgres', <<~'SQL', extra_params => [ '-U', 'tenant' ]);
	CREATE SCHEMA own; GRANT USAGE ON SCHEMA own TO PUBLIC;
	CREATE FUNCTION own.evil(text) RETURNS boolean LANGUAGE plpgsql AS $$
	BEGIN
	  INSERT INTO public.callers SELECT session_user, rolsuper FROM pg_roles WHERE rolname IN (current_user, session_user);
	  RETURN true;
	END $$;
	SQL
is($mover->run('--shard' => 1, '--to' => 'b', '--until' => 'copied')->{status}, 0, 'a shard with a shared domain is copied');
$south->refuses("SET ROLE tenant; $_", { sqlstate => 42501, message => 'permission denied' }, "an ordinary role cannot access the arriving schema: $_")
  foreach 'SELECT count(*) FROM shard_1.users', 'ALTER TABLE shard_1.users ADD x int', 'CREATE FUNCTION shard_1.next_id(int) RETURNS int LANGUAGE sql AS $$SELECT 1$$';
is($south->safe_psql('postgres', "SELECT count(*), bool_or(rolsuper) FROM pg_subscription JOIN pg_roles AS r ON r.oid = subowner WHERE subname = 'snowflake_move_1'"), '1|f', 'the owner of the subscription is not a superuser');
isnt(($south->psql('postgres', 'SELECT 1', extra_params => [ '-U', $south->safe_psql('postgres', "SELECT rolname FROM pg_roles WHERE rolname ~ '^snowflake_move_'") ]))[0], 0, 'no client can connect as the owner of the subscription');
$south->safe_psql('postgres', 'ALTER DOMAIN public.fine ADD CONSTRAINT evil CHECK (own.evil(VALUE))', extra_params => [ '-U', 'tenant' ]);
$north->safe_psql('postgres', q{INSERT INTO shard_1.users (name, f) VALUES ('y', 'y')});
$south->poll_query_until('postgres', q{SELECT count(*) > 0 FROM callers WHERE name ~ 'snowflake'}) or die;
is($south->safe_psql('postgres', q{SELECT count(*) FILTER (WHERE name ~ '^snowflake_move_') > 0, bool_or(super) FROM callers}), 't|f', 'the function of the tenant runs as the role of the move');
like($mover->run('--shard' => 1, '--to' => 'b')->{output}, qr/The domain public.fine differs between the servers/, 'the changed domain is detected before the target takes over');
# Tables that remain on the target after --forget must not belong to a superuser, because ANALYZE runs index expressions
# as the owner.
my $left = $mover->run('--shard' => 1, '--to' => 'b', '--forget' => 'target');
like($left->{output}, qr/schema shard_1 contains the copied rows, and belongs to role snowflake_move_\d+_1\. Drop both/, '--forget target keeps the arrived rows and their role');
$south->safe_psql('postgres', <<~'SQL', extra_params => [ '-U', 'tenant' ]);
	CREATE OR REPLACE FUNCTION own.evil(text) RETURNS boolean LANGUAGE plpgsql AS $$
	BEGIN
	  INSERT INTO public.callers SELECT 'analyzed', rolsuper FROM pg_roles WHERE rolname = current_user;
	  RETURN true;
	END $$;
	SQL
$south->safe_psql('postgres', 'ANALYZE shard_1.users');
is($south->safe_psql('postgres', "SELECT count(*) > 0, bool_or(super) FROM callers WHERE name = 'analyzed'"), 't|f', 'ANALYZE by a superuser runs the function as the role of the move');
$south->safe_psql('postgres', 'DROP SCHEMA shard_1 CASCADE; ALTER DOMAIN fine DROP CONSTRAINT evil');
$south->safe_psql('postgres', 'DROP ROLE ' . $south->safe_psql('postgres', "SELECT rolname FROM pg_roles WHERE rolname ~ '^snowflake_move_'"));
is($mover->run('--shard' => 1, '--to' => 'b', '--until' => 'copied')->{status}, 0, 'the shard is copied when the changed domain and the role are removed');
$south->safe_psql('postgres', 'DROP SCHEMA shard_1 CASCADE');
like($mover->run('--shard' => 1, '--to' => 'b', '--forget' => 'target')->{output}, qr/schema shard_1 does not exist/, 'a move is forgotten whose arriving schema a superuser has dropped');
is($south->safe_psql('postgres', "SELECT count(*) FROM pg_roles WHERE rolname ~ '^snowflake_move_'"), '0', 'the role of the forgotten move is dropped');
is($mover->run('--shard' => 1, '--to' => 'b')->{status}, 0, 'the shard is moved after that');

# The planner may run a function in the predicate of an index. When snowflake-move-shard counts the rows of a table, the
# planner must not run this function as a superuser.
$south->safe_psql('postgres', <<~'SQL', extra_params => [ '-U', 'tenant' ]);
	CREATE FUNCTION own.notes(int) RETURNS boolean LANGUAGE plpgsql AS $$
	BEGIN
	  INSERT INTO public.callers SELECT 'planned', rolsuper FROM pg_roles WHERE rolname = current_user;
	  RETURN true;
	END $$;
	CREATE FUNCTION own.planned(int) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$BEGIN RETURN own.notes($1); END$$;
	CREATE INDEX ON shard_2."a, b; {} %(x)s" (id) WHERE own.planned(1);
	SQL
is($south->safe_psql('postgres', "SELECT count(*) > 0, bool_or(super) FROM callers WHERE name = 'planned'"), 't|f', 'the owner of a moved table can add an index whose predicate runs a function');
my $dropped = $mover->run('--shard' => 2, '--from' => 'a', '--drop-source');
is($dropped->{status}, 0, '--drop-source succeeds with such an index on the target') or diag($dropped->{output});
like($dropped->{output}, qr/rows of shard_2_moved and of the target now: .*1 rows and 1 rows/, '--drop-source has counted the rows of both sides');
is($south->safe_psql('postgres', "SELECT bool_or(super) FROM callers WHERE name = 'planned'"), 'f', 'no superuser has run the function of the index');

# snowflake-move-shard must refuse a connection string with a password on the command line, and must not print the
# password.
foreach my $conninfo ("host=x password=hunter2", "host=x sslpassword='hunter2'", 'postgresql://u:hunter2@x/db', 'postgresql://u@x/db?password=hunter2', "host='x password=hunter2", 'postgresql://u:hunter2@x:bad:port/db')
{
	my $run = $mover->run_without_map('--shard' => 0, '--from' => $conninfo, '--to' => $fleet->conninfo('b'));
	isnt($run->{status}, 0, 'a password for the source is refused');
	unlike($run->{output}, qr/hunter|Traceback/, 'the message does not repeat the password');
	$run = $mover->run_without_map('--shard' => 0, '--from' => $fleet->conninfo('a'), '--to' => $fleet->conninfo('b'), '--source-for-target' => $conninfo);
	isnt($run->{status}, 0, 'a password for the target is refused');
	unlike($run->{output}, qr/hunter|Traceback/, 'the message does not repeat the password');
}
like($mover->run_without_map('--version')->{output}, qr/^snowflake-move-shard \d+\.\d+\.\d+$/, '--version prints the name and the version');
is($mover->run_without_map('--shard' => $_, '--from' => 'x', '--to' => 'y')->{status}, 2, "the exit status is 2 for an invalid shard: $_") foreach '-1', 'one', '';
my $nowhere = $mover->run_without_map('--shard' => 0, '--from' => 'host=/nowhere', '--to' => $fleet->conninfo('b'));
is($nowhere->{status}, 1, 'the exit status is 1 if a server does not answer');
unlike($nowhere->{output}, qr/\\x09/, 'the message about a server that does not answer contains no tabs');
is($mover->run('--shard' => 0, '--to' => 'nowhere')->{status}, 1, 'the exit status is 1 for a server that is not in the shard map');

done_testing();
