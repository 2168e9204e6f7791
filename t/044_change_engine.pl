# Tests that a database can change between the library and the SQL version of snowflake (SQL engine), whose functions
# also mint ids. A dump with the SQL version of snowflake is restored on a server with the library. CREATE EXTENSION on
# this server replaces the SQL version of snowflake. Later the test changes the database back from the library to the
# SQL version of snowflake.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Catalogue;
use Snowflake::Ledger;
use Snowflake::LibraryPath;
use Snowflake::Node;
use Test::More;

my $c = Snowflake::Node->create_running('c', conf => "snowflake.max_lead = 1s\n");
my $plain = Snowflake::Node->create('plain', conf => "shared_preload_libraries = ''\n");
$plain->start;
$_->safe_psql('postgres', 'CREATE ROLE owner LOGIN; CREATE ROLE app LOGIN') foreach $c, $plain;
my $script = $c->basedir . '/engine.sql';
append_to_file($script, $c->safe_psql('postgres', 'SET client_min_messages = error; CREATE EXTENSION snowflake_migrate; SELECT snowflake.generator_sql(3)'));

sub make_database
{
	my ($node, $name) = @_;
	$node->safe_psql('postgres', "CREATE DATABASE $name OWNER owner");
	return;
}

sub as_owner
{
	my ($node, $name, @arguments) = @_;
	$node->command_ok([ @arguments, '-d', $node->connstr($name) . ' user=owner' ], "$name on " . $node->name . ": $arguments[0]");
	return;
}

# The statements of an application must work with the library and with the SQL version of snowflake.
my $ledger = Snowflake::Ledger->new(shard_bits => 8);
sub insert
{
	my ($node, $name) = @_;
	my @ids = split /\n/, $node->safe_psql($name, <<~'SQL', extra_params => [ '-U', 'app' ]);
		PREPARE add(text) AS INSERT INTO app.photos (caption) VALUES ($1) RETURNING id;
		EXECUTE add('one');
		INSERT INTO app.photos (caption) SELECT 'many' FROM generate_series(1, 300) RETURNING id;
		INSERT INTO app.photos (id, caption) SELECT snowflake.next_id(5, max(id)), 'after' FROM app.photos RETURNING id;
		SELECT unnest(snowflake.next_ids(5, 1500));
		SQL
	$ledger->record($ledger->anonymous, @ids);
	is($node->safe_psql($name, "SELECT count(*) FROM app.photos WHERE shard <> 5 OR snowflake.time_of(id) IS NULL"), '0', "$name on " . $node->name . ': ids decode to the shard that was stored with them');
	is($node->safe_psql($name, 'SELECT count(*) = (SELECT count(*) FROM app.photos) FROM app.today'), 't', "$name on " . $node->name . ': a view that uses created_within() shows all rows');
	return;
}

make_database($plain, 'first');
as_owner($plain, 'first', 'psql', '-Xqv', 'ON_ERROR_STOP=1', '-o', '/dev/null', '-f', $script);
$plain->safe_psql('first', <<~'SQL', extra_params => [ '-U', 'owner' ]);
	CREATE SCHEMA app;
	CREATE TABLE app.photos (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), caption text,
	  shard integer GENERATED ALWAYS AS (snowflake.shard_of(id)) STORED, CONSTRAINT of_shard CHECK (snowflake.shard_of(id) = 5));
	CREATE INDEX ON app.photos (snowflake.time_of(id));
	CREATE INDEX ON app.photos (snowflake.to_base62(id));
	CREATE VIEW app.today AS SELECT * FROM app.photos WHERE snowflake.created_within(id, now() - interval '1 day', 'infinity');
	GRANT USAGE ON SCHEMA app TO app;
	GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA app TO app;
	SQL
insert($plain, 'first');

# Restores a dump with the SQL version of snowflake on the server with the library.
my $dump = $c->basedir . '/first.dump';
as_owner($plain, 'first', 'pg_dump', '-Fc', '-f', $dump);
make_database($c, 'taken');
as_owner($c, 'taken', 'pg_restore', '-e', $dump);
my $mark = $c->mark('taken');
is($c->safe_psql('taken', "SELECT $mark > max(extract(epoch FROM snowflake.time_of(id)) * 1000) FROM app.photos"), 't', 'the dump contains a mark above all ids');

$ledger->new_server_run;
insert($c, 'taken');
$ledger->new_server_run;
$c->crash($ledger, -0.5);
insert($c, 'taken');

my $session = $c->session('taken');
$session->query_safe('BEGIN; SELECT snowflake.next_id(5)');
$c->refuses("SET lock_timeout = '100ms'; CREATE EXTENSION snowflake", { sqlstate => '55P03', message => 'lock timeout' }, 'CREATE EXTENSION waits for an open transaction that has minted', 'taken');
$session->query_safe('COMMIT');
$c->safe_psql('taken', "CREATE FUNCTION snowflake.next_id(shard smallint) RETURNS bigint LANGUAGE sql AS 'SELECT 1'", extra_params => [ '-U', 'owner' ]);
$c->refuses('CREATE EXTENSION snowflake', { sqlstate => '2BP01', message => 'that a script of generator_sql\(\) did not create', detail => 'next_id\(smallint\)', hint => 'Move these objects' }, 'CREATE EXTENSION fails if the schema contains a function that is not of the SQL engine', 'taken');
# CREATE EXTENSION fails if a function of the schema snowflake belongs to another extension.
$c->safe_psql('taken', 'ALTER EXTENSION plpgsql ADD FUNCTION snowflake.next_id(smallint)');
$c->refuses('CREATE EXTENSION snowflake', { sqlstate => '2BP01', message => 'that a script of generator_sql\(\) did not create', detail => 'function snowflake.next_id\(smallint\)' }, 'CREATE EXTENSION fails if the schema contains a function of another extension', 'taken');
$c->safe_psql('taken', 'ALTER EXTENSION plpgsql DROP FUNCTION snowflake.next_id(smallint); DROP FUNCTION snowflake.next_id(smallint)');
my $planter = $c->session('taken');
$planter->query_safe("SET ROLE owner; BEGIN; CREATE FUNCTION snowflake.next_id(shard smallint) RETURNS bigint LANGUAGE sql AS 'SELECT 1'");
$c->refuses("SET lock_timeout = '100ms'; CREATE EXTENSION snowflake", { sqlstate => '55P03', message => 'lock timeout' }, 'CREATE EXTENSION waits for an open transaction that makes a function in the schema', 'taken');
$planter->query_safe('ROLLBACK');
$planter->quit;
insert($c, 'taken');

# The planner evaluates expressions of indexes and of extended statistics. Even if a superuser runs CREATE EXTENSION,
# expressions of indexes must run as the owner of the table.
$c->safe_psql('taken', <<~'SQL', extra_params => [ '-U', 'owner' ]);
	CREATE FUNCTION public.spy() RETURNS integer LANGUAGE plpgsql IMMUTABLE
	  AS $$ BEGIN IF current_user <> 'owner' THEN RAISE EXCEPTION 'ran as %', current_user; END IF; RETURN 1; END $$;
	CREATE INDEX ON snowflake.dumped_seal (seal) WHERE public.spy() > 0;
	CREATE STATISTICS snowflake.spied ON (seal + public.spy()), seal FROM snowflake.dumped_seal;
	SQL
$mark = $c->mark('taken');

# An open session must continue after CREATE EXTENSION, although its cached plans use the replaced functions.
$session->query_safe('CREATE TEMP TABLE kept (id bigint DEFAULT snowflake.next_id(5)); INSERT INTO kept DEFAULT VALUES');
$ledger->new_server_run;
$c->clock->step(-0.5);
$c->safe_psql('taken', 'CREATE EXTENSION snowflake');
cmp_ok($c->mark('taken'), '>=', $mark, 'the mark of the extension is not below the mark of the SQL engine');
insert($c, 'taken');
$ledger->record($ledger->anonymous, $session->query_safe('INSERT INTO kept SELECT snowflake.next_id(5) RETURNING id'));
$session->quit;
$c->create_database('fresh');
is(Snowflake::Catalogue::differences(Snowflake::Catalogue::snapshot($c, 'taken'), Snowflake::Catalogue::snapshot($c, 'fresh')), '',
	'after the change the catalogue equals that of a fresh installation');
is($c->safe_psql('taken', "SELECT count(*) FROM pg_namespace WHERE nspname = 'snowflake_sql'"), '0', 'after the change the schema snowflake_sql does not exist');
is($c->safe_psql('taken', 'SELECT minting FROM snowflake.health'), 't', 'after the change health shows that the database mints');
$ledger->new_server_run;
$c->crash($ledger, -0.5);
insert($c, 'taken');

# Changes the database back from the library to the SQL version of snowflake. Runs the script of generator_sql(), and
# restores a dump without the extension.
as_owner($c, 'taken', 'pg_dump', '-Fc', '-f', "$dump.2");
my $list = $c->basedir . '/list';
append_to_file($list, join '', grep { !/ EXTENSION .*snowflake|TABLE DATA snowflake (backfills|late_ids|adopted) / } map { "$_\n" } split /\n/, (run_command([ 'pg_restore', '-l', "$dump.2" ]))[0]);
make_database($plain, 'back');
as_owner($plain, 'back', 'psql', '-Xqv', 'ON_ERROR_STOP=1', '-o', '/dev/null', '-f', $script);
$ledger->new_server_run;
$plain->clock->set($c->clock->offset - 0.5);
$plain->start_with('', 'immediate');
as_owner($plain, 'back', 'pg_restore', '-e', '-L', $list, "$dump.2");
is($plain->mark('back'), $c->mark('taken'), 'the SQL engine has the mark of the dump');
insert($plain, 'back');

# CREATE EXTENSION must not replace an SQL version of snowflake that has another layout than the server.
$c->start_with("snowflake.layout = 'twitter'");
make_database($c, 'other');
as_owner($c, 'other', 'pg_restore', '-e', $dump);
$c->refuses('CREATE EXTENSION snowflake', { sqlstate => '55000', message => 'another layout than the settings of this server', detail => '41/5\+5/12', hint => 'snowflake.layout' }, 'CREATE EXTENSION fails if the SQL engine has another layout', 'other');
is($c->safe_psql('other', 'SELECT snowflake.shard_of(snowflake.next_id(200))'), '200', 'the SQL engine mints after the failed CREATE EXTENSION');
$c->create_database('twitter');
make_database($plain, 'twitter');
as_owner($plain, 'twitter', 'psql', '-Xqv', 'ON_ERROR_STOP=1', '-o', '/dev/null', '-f', $script);
$plain->refuses('INSERT INTO snowflake.dumped_seal VALUES (' . $c->safe_psql('twitter', 'SELECT seal FROM snowflake.dumped_seal') . ')',
	{ sqlstate => '23514', message => 'same_seal' }, 'the SQL engine refuses the seal of another layout', 'twitter');

# CREATE EXTENSION must not read a view in place of a table, because the view could run its owner's code.
$c->start_with('');
make_database($c, 'trap');
as_owner($c, 'trap', 'pg_restore', '-e', $dump);
$c->safe_psql('trap', <<~'SQL', extra_params => [ '-U', 'owner' ]);
	CREATE FUNCTION app.trap() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''run''; END';
	DROP TABLE snowflake.dumped_seal;
	CREATE VIEW snowflake.dumped_seal AS SELECT app.trap() AS seal;
	SQL
$c->refuses('CREATE EXTENSION snowflake', { sqlstate => '42P06', message => 'schema "snowflake" already exists' }, 'CREATE EXTENSION fails if a view replaces a table of the SQL engine', 'trap');

# Simulates pg_tle (Trusted Language Extensions) by functions of the same names in the schema pgtle. Like pg_tle, the
# functions store a script as an extension that needs no superuser.
my ($install_path, $root, $extensions) = Snowflake::LibraryPath::copy_installation(without_control => 1);
my $tle = Snowflake::Node->new('tle', install_path => $install_path);
$tle->init;
$tle->start;
$tle->safe_psql('postgres', 'CREATE ROLE owner LOGIN; CREATE ROLE app LOGIN');
foreach my $database ('tle', 'returned')
{
	make_database($tle, $database);
	$tle->safe_psql($database, <<~"SQL");
		CREATE SCHEMA pgtle;
		GRANT USAGE ON SCHEMA pgtle TO owner;
		CREATE FUNCTION pgtle.install_extension(name text, version text, description text, ext text, requires text[] DEFAULT NULL) RETURNS boolean
		  LANGUAGE plpgsql SECURITY DEFINER AS \$f\$
		DECLARE
		  file record;
		  written oid;
		BEGIN
		  FOR file IN VALUES (name || '--' || version || '.sql', ext),
		    (name || '.control', format(E'default_version = %L\\nrelocatable = false\\nsuperuser = false\\ntrusted = false\\ncomment = %L\\n', version, description))
		  LOOP
		    written := lo_from_bytea(0, convert_to(file.column2, 'UTF8'));
		    PERFORM lo_export(written, '$extensions/' || file.column1), lo_unlink(written);
		  END LOOP;
		  RETURN ext !~ '_pgtle_[io]_';
		END \$f\$;
		SQL
	is($tle->safe_psql($database, $c->safe_psql('postgres', "SELECT snowflake.generator_sql(7, 'fleet', pg_tle => true)"), extra_params => [ '-U', 'owner' ]), 't', "pg_tle: the package is installed in $database");
}
my $archived = $c->basedir . '/tle.dump';
sub restore_without
{
	my ($node, $name, $user, $pattern) = @_;
	unlink $list;
	append_to_file($list, join '', grep { !/$pattern/ } map { "$_\n" } split /\n/, (run_command([ 'pg_restore', '-l', $archived ]))[0]);
	$node->command_ok([ 'pg_restore', '-e', '-L', $list, '-d', $node->connstr($name) . " user=$user", $archived ], "$name on " . $node->name . ': pg_restore');
	return;
}
$tle->safe_psql('tle', <<~'SQL', extra_params => [ '-U', 'owner' ]);
	CREATE EXTENSION snowflake SCHEMA pg_catalog;
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5));
	INSERT INTO photos SELECT FROM generate_series(1, 2000);
	SQL
is($tle->safe_psql('tle', 'SELECT count(*) FROM photos WHERE snowflake.region_of(id) = 7'), '2000', 'pg_tle: the extension mints');
as_owner($tle, 'tle', 'pg_dump', '-Fc', '-f', $archived);
make_database($c, 'tle');
restore_without($c, 'tle', $c->safe_psql('postgres', 'SELECT current_user'), qr/ (SCHEMA - pgtle|FUNCTION pgtle|ACL - SCHEMA pgtle) /);
my $above = 'INSERT INTO photos DEFAULT VALUES RETURNING id > (SELECT max(id) FROM photos)';
is($c->safe_psql('tle', "SELECT extversion FROM pg_extension WHERE extname = 'snowflake' AND to_regnamespace('snowflake_sql') IS NULL"), '1.0.0', 'pg_tle: restoring its dump creates the extension of the library');
is($c->safe_psql('tle', $above), 't', 'pg_tle: the extension of the library mints above the ids of the dump');
$c->command_ok([ 'pg_dump', '-Fc', '-f', $archived, $c->connstr('tle') ], 'tle on c: pg_dump');
restore_without($tle, 'returned', 'owner', qr/TABLE DATA snowflake (?!dumped_seal )/);
is($tle->safe_psql('returned', $above), 't', 'pg_tle: a dump of the library is restored, and the extension of pg_tle mints above its ids');
$tle->stop;

# Runs the commands of doc/managed.md.
my ($install, $back) = slurp_file("$FindBin::RealBin/../doc/managed.md") =~ /^```sh\n(.*?)^```$/msg;
my $bin = $c->config_data('--bindir');
my $stand_ins = "cd '" . $c->basedir . "'\n" . join '', map { sprintf <<~'SH', $_, $plain->host, $plain->port, $bin, $_, $c->host, $c->port, $bin, $_ } qw(psql pg_dump pg_restore);
	%s() { case "$*" in *managed*) PGHOST='%s' PGPORT=%s '%s/%s' "$@" ;; *) PGHOST='%s' PGPORT=%s '%s/%s' "$@" ;; esac; }
	SH
$c->create_database('app');
$c->safe_psql('app', 'CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5)); INSERT INTO photos SELECT FROM generate_series(1, 2000)');
foreach my $block ($install, $back)
{
	$plain->safe_psql('postgres', 'DROP DATABASE IF EXISTS managed');
	$plain->safe_psql('postgres', 'CREATE DATABASE managed');
	my $err = '';
	my ($out, $name) = ('', $block =~ m{^(\S+ \S+)});
	ok(IPC::Run::run([ 'bash', '-euc', "$stand_ins$block" ], '>', \$out, '2>', \$err), "doc/managed.md: the block that begins with $name runs") or diag($err);
}
is($plain->safe_psql('managed', 'INSERT INTO photos DEFAULT VALUES RETURNING id = (SELECT max(id) FROM photos) IS NOT TRUE AND id > (SELECT max(id) FROM photos)'), 't', 'doc/managed.md: after the commands an id is above all earlier ids');

$ledger->check(10_000, 'ids are unique over both engines');
done_testing();
