# Tests that ordinary roles cannot lower the high-water mark permanently, change the stored layout (seal) or lock the
# extension. After each attempt of an ordinary role, ids must stay unique, even if the server crashes.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Ledger;
use Snowflake::Node;
use Test::More;

my $node = Snowflake::Node->create('main', conf => <<~'CONF');
	snowflake.max_lead = 60s
	wal_writer_delay = 10s
	wal_level = replica
	restart_after_crash = on
	CONF
$node->start;
my $ledger = Snowflake::Ledger->new;

sub killed
{
	my ($step, $database) = @_;
	$node->kill_all;
	$node->clock->step($step);
	$ledger->new_server_run;
	$node->start;
	$node->mint($ledger, undef, $database);
	$node->clock->step(-$step);
	return;
}

# If a role with UPDATE on every sequence lowers the high-water mark, no id repeats.
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake; CREATE ROLE etl LOGIN IN ROLE pg_write_all_data, pg_read_all_data; CREATE ROLE joe LOGIN');
foreach my $sql (
	"SET ROLE etl; SELECT setval('snowflake.high_water', 1735689600000)",
	"SET ROLE etl; SELECT setval('snowflake.high_water', 1735689600000, false), nextval('snowflake.high_water')",
	'ALTER SEQUENCE snowflake.high_water RESTART WITH 1735689600000',
	'ALTER SEQUENCE snowflake.high_water SET UNLOGGED; ALTER SEQUENCE snowflake.high_water SET LOGGED; ALTER SEQUENCE snowflake.high_water RESTART WITH 1735689600001')
{
	$node->mint($ledger);
	$node->safe_psql('postgres', $sql);
	cmp_ok($node->mark, '<', 1735689700000, "the mark is lowered by $sql");
	killed(-20);
	cmp_ok($node->mark, '>', 1735689700000, 'the lowered mark is raised again');
}
$ledger->check(10_000, 'ids are unique although the mark was lowered');
foreach my $sql ('DELETE FROM snowflake.dumped_seal', 'UPDATE snowflake.dumped_seal SET seal = 0', 'UPDATE snowflake.dumped_seal SET seal = seal')
{
	$node->refuses("SET ROLE etl; $sql", { sqlstate => '42501', message => 'the row of snowflake.dumped_seal cannot be changed' }, $sql);
}
$node->refuses('TRUNCATE snowflake.dumped_seal', { sqlstate => '42501', message => 'cannot be changed' }, 'a superuser cannot truncate snowflake.dumped_seal');
$node->refuses("SET ROLE etl; SELECT snowflake.set_mark('2026-01-01')", { sqlstate => '42501', message => 'permission denied for function set_mark' },
	'only a superuser may call set_mark()');

# Deletes the row of snowflake.dumped_seal, which transfers the layout to dumps. Without the row in
# snowflake.dumped_seal minting must fail, because the next dump would not contain the layout.
$node->safe_psql('postgres', 'ALTER TABLE snowflake.dumped_seal DISABLE TRIGGER ALL; DELETE FROM snowflake.dumped_seal; ALTER TABLE snowflake.dumped_seal ENABLE TRIGGER ALL');
select undef, undef, undef, 1.1;
$node->refuses('SELECT snowflake.next_id(1)', { sqlstate => '55000', message => 'a dump of this database would not contain the layout of its ids',
	hint => 'INSERT INTO snowflake.dumped_seal' }, 'next_id() fails if the row of dumped_seal was deleted');
is($node->safe_psql('postgres', 'SELECT minting, reason FROM snowflake.health()'), 'f|a dump would not contain the id layout', 'health shows that the row of dumped_seal was deleted');
$node->safe_psql('postgres', 'SET ROLE joe; INSERT INTO snowflake.dumped_seal SELECT last_value FROM snowflake.seal_local') for 1 .. 2;
is($node->safe_psql('postgres', 'SELECT count(*) FROM snowflake.dumped_seal'), '1', 'the INSERT of the hint restores one row, even if it runs twice');
$node->mint($ledger);

# Inserts the row of another layout (seal) into snowflake.dumped_seal in ways that fire no trigger.
my $twitter = '1288834974657 * 2012500 + 22 * 57500 + 5 * 2300 + 5 * 92 + 12 * 4';
foreach my $way (
	[ 'SET session_replication_role = replica', '' ],
	[ 'ALTER TABLE snowflake.dumped_seal DISABLE TRIGGER ALL', 'ALTER TABLE snowflake.dumped_seal ENABLE TRIGGER ALL' ],
	[ 'ALTER TABLE snowflake.dumped_seal DISABLE TRIGGER ALL', '' ])
{
	my ($before, $after) = @$way;
	$node->refuses("$before; INSERT INTO snowflake.dumped_seal VALUES ($twitter)", { sqlstate => '55000', message => 'restored ids have another layout than this database' }, "a row of another seal is refused after $before");
	$node->safe_psql('postgres', $after) if $after ne '';
	is($node->safe_psql('postgres', 'SELECT count(*) FROM snowflake.dumped_seal'), '1', 'the refused row is not in dumped_seal');
	$node->refuses('SELECT snowflake.next_id(1)', { sqlstate => '55000', message => 'restored ids have another layout than this database' }, 'next_id() fails after a row of another seal was inserted');
	$node->safe_psql('postgres', "SELECT setval('snowflake.seal', last_value) FROM snowflake.seal_local");
}
$node->safe_psql('postgres', 'ALTER TABLE snowflake.dumped_seal DROP CONSTRAINT same_seal');
$node->safe_psql('postgres', "SET session_replication_role = replica; INSERT INTO snowflake.dumped_seal VALUES ($twitter)");
select undef, undef, undef, 1.1;
$node->refuses('SELECT snowflake.next_id(1)', { sqlstate => '55000', message => 'restored ids have another layout than this database' }, 'next_id() fails if dumped_seal contains a row of another seal');
$node->safe_psql('postgres', "DELETE FROM snowflake.dumped_seal WHERE seal = $twitter");
$node->safe_psql('postgres', 'SET ROLE joe; SELECT snowflake.next_id(1)');

$node->safe_psql('postgres', 'CREATE TABLE loaded (id bigint); GRANT INSERT ON loaded TO joe; ALTER TABLE snowflake.dumped_seal ENABLE ALWAYS TRIGGER present_seal');
$node->refuses("SET ROLE joe; INSERT INTO snowflake.dumped_seal VALUES ($twitter)", { sqlstate => '42501', message => 'permission denied to insert another id layout', hint => 'Delete the restored rows' }, 'a role that only loads rows cannot present another seal');
$node->mint($ledger);
$node->refuses("SET ROLE etl; INSERT INTO snowflake.dumped_seal VALUES ($twitter)", { sqlstate => '55000', message => 'restored ids have another layout than this database' }, 'a member of pg_write_all_data can present another seal, which stops the database');
$node->safe_psql('postgres', "SELECT setval('snowflake.seal', last_value) FROM snowflake.seal_local");

# CREATE EXTENSION revokes privileges that ALTER DEFAULT PRIVILEGES granted.
$node->safe_psql('postgres', 'CREATE DATABASE generous');
$node->safe_psql('generous', <<~'SQL');
	ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO joe, PUBLIC;
	ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO joe WITH GRANT OPTION;
	ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC;
	ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO joe;
	ALTER DEFAULT PRIVILEGES GRANT ALL ON TYPES TO joe;
	ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO joe, PUBLIC;
	CREATE EXTENSION snowflake;
	SQL
my $privileges = <<~'SQL';
	SELECT string_agg(acl, ' ' ORDER BY acl) FROM (
	  SELECT relname || (SELECT string_agg(' ' || grantee || ' ' || privilege_type || ' ' || is_grantable, ',' ORDER BY grantee, privilege_type) FROM aclexplode(relacl)) AS acl
	    FROM pg_class WHERE relnamespace = 'snowflake'::regnamespace
	  UNION ALL SELECT proname || (SELECT string_agg(' ' || grantee || ' ' || privilege_type, ',' ORDER BY grantee) FROM aclexplode(coalesce(proacl, acldefault('f', proowner)))) FROM pg_proc WHERE pronamespace = 'snowflake'::regnamespace
	  UNION ALL SELECT nspname || nspacl::text FROM pg_namespace WHERE nspname = 'snowflake') AS all_of_them
	SQL
is($node->safe_psql('generous', $privileges), $node->safe_psql('postgres', $privileges), 'default privileges do not change the privileges on the extension');
foreach my $sql ("SELECT setval('snowflake.high_water', 1)", 'SELECT snowflake.accept_clock()', 'SELECT snowflake.accept_clone()', 'CREATE FUNCTION snowflake.next_id(text) RETURNS text RETURN $1',
	'CREATE TRIGGER t BEFORE INSERT ON snowflake.dumped_seal EXECUTE FUNCTION suppress_redundant_updates_trigger()')
{
	$node->refuses("SET ROLE joe; $sql", { sqlstate => '42501', message => '(?:permission denied|must be owner)' }, "default privileges do not permit $sql");
}
$node->safe_psql('postgres', 'DROP DATABASE generous');

# Some commands of PostgreSQL lock a relation before they check privileges. A command of a role without the privilege
# must fail at once, although another transaction has locked the high-water mark.
$node->safe_psql('postgres', 'GRANT CREATE ON SCHEMA public TO joe');
$node->safe_psql('postgres', 'SET ROLE joe; CREATE TABLE mine (i int); CREATE TABLE parted (last_value bigint, log_cnt bigint, is_called bool) PARTITION BY LIST (last_value);'
	  . 'CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN END $$; CREATE VIEW seen AS SELECT 1 AS i');
my $reader = $node->session;
$reader->query_safe('BEGIN; SELECT 1 FROM snowflake.high_water, snowflake.seal, snowflake.dumped_seal');
foreach my $relation (qw(high_water seal dumped_seal))
{
	foreach my $sql (
		"CREATE RULE r AS ON INSERT TO snowflake.$relation DO ALSO INSERT INTO mine VALUES (1)",
		"SET search_path = snowflake; CREATE OR REPLACE RULE r AS ON UPDATE TO $relation DO INSTEAD NOTHING",
		"ALTER TABLE parted ATTACH PARTITION snowflake.$relation DEFAULT",
		"ALTER TABLE parted DETACH PARTITION snowflake.$relation",
		"CREATE TABLE part PARTITION OF snowflake.$relation DEFAULT",
		"CREATE TABLE child () INHERITS (snowflake.$relation)",
		"CREATE TRIGGER t BEFORE INSERT ON snowflake.$relation EXECUTE FUNCTION f()",
		"CREATE CONSTRAINT TRIGGER t AFTER INSERT ON mine FROM snowflake.$relation FOR EACH ROW EXECUTE FUNCTION f()",
		"CREATE TABLE referring (i bigint REFERENCES snowflake.$relation)",
		"ALTER TABLE mine ADD FOREIGN KEY (i) REFERENCES snowflake.$relation",
		"ALTER TABLE mine ADD COLUMN j bigint REFERENCES snowflake.$relation",
		"ALTER INDEX snowflake.$relation DEPENDS ON EXTENSION plpgsql",
		"DO \$\$ BEGIN EXECUTE 'CREATE RULE r AS ON INSERT TO snowflake.$relation DO INSTEAD NOTHING'; END \$\$",
		"CREATE SCHEMA own CREATE TABLE referring (i bigint REFERENCES snowflake.$relation)")
	{
		$node->safe_psql('postgres', 'GRANT CREATE ON DATABASE postgres TO joe') if $sql =~ /CREATE SCHEMA/;
		$node->refuses("SET lock_timeout = '300ms'; SET ROLE joe; $sql", { sqlstate => '42501', message => 'must be owner of' }, "the privilege check fails before the mark is locked: $sql");
	}
}
$node->safe_psql('postgres', 'REVOKE CREATE ON DATABASE postgres FROM joe');
$node->safe_psql('postgres', 'SET ROLE joe; CREATE RULE r AS ON INSERT TO seen DO INSTEAD INSERT INTO mine VALUES (1); CREATE TRIGGER t BEFORE INSERT ON mine EXECUTE FUNCTION f(); DROP TRIGGER t ON mine');
$reader->query_safe('COMMIT');
$reader->quit;
$node->mint($ledger);

# A command waits for a lock on the table public.high_water, which another session drops. After the table
# public.high_water is dropped, the command must not change the sequence snowflake.high_water, which has the same name.
foreach my $sql (
	'CREATE RULE r AS ON INSERT TO high_water DO INSTEAD NOTHING',
	'CREATE TRIGGER t BEFORE INSERT ON high_water EXECUTE FUNCTION public.f()',
	'ALTER TABLE public.parted ATTACH PARTITION high_water DEFAULT',
	'ALTER TABLE public.mine ADD FOREIGN KEY (i) REFERENCES high_water')
{
	$node->safe_psql('postgres', 'SET ROLE joe; CREATE TABLE public.high_water (last_value bigint PRIMARY KEY, log_cnt bigint, is_called bool)');
	my $dropper = $node->session;
	$dropper->query_safe('BEGIN; DROP TABLE public.high_water');
	my $waiter = $node->start_writer("SET ROLE joe; SET search_path = public, snowflake; $sql");
	$node->poll_query_until('postgres', "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE application_name = 'writer'")
	  or BAIL_OUT('nobody waits');
	$dropper->query_safe('COMMIT');
	$dropper->quit;
	like($node->finish_writer($waiter)->{errors}, qr/ERROR:  relation "public.high_water" does not exist/, "the command does not continue with the mark: $sql");
}
$node->safe_psql('postgres', 'SET ROLE joe; CREATE TEMPORARY TABLE high_water (i int PRIMARY KEY); CREATE TEMPORARY TABLE child () INHERITS (high_water);'
	  . 'CREATE RULE r AS ON DELETE TO high_water DO INSTEAD NOTHING; CREATE TEMPORARY TABLE referring (i int REFERENCES high_water)');

# The function is_seal(), which a CHECK constraint calls, must not store a layout in a read-only transaction.
foreach my $sql (
	"BEGIN READ ONLY; SELECT snowflake.is_seal($twitter)",
	'RESET ROLE; GRANT EXECUTE ON FUNCTION snowflake.present_seal() TO joe; SET ROLE joe; CREATE TEMPORARY TABLE seals (seal bigint); CREATE TRIGGER t BEFORE INSERT ON seals FOR EACH ROW EXECUTE FUNCTION snowflake.present_seal();'
	  . "BEGIN READ ONLY; INSERT INTO seals VALUES ($twitter)")
{
	$node->refuses("SET ROLE joe; $sql", { sqlstate => '25006', message => 'cannot record another id layout' }, "the seal is not recorded in a read-only transaction: $sql");
}
$node->mint($ledger);

$node->safe_psql('postgres', 'CREATE TABLE finished (i int)');
my @setters = map { $node->start_writer("DO \$\$ BEGIN WHILE NOT EXISTS (SELECT FROM finished) LOOP PERFORM snowflake.set_mark('2025-02-01'); END LOOP; END \$\$") } 1 .. 2;
$node->poll_query_until('postgres', "SELECT count(*) = 2 FROM pg_stat_activity WHERE application_name = 'writer' AND state = 'active'");
$node->safe_psql('postgres', <<~'SQL');
	CREATE TABLE lowered (ms bigint, mark bigint);
	DO $$
	DECLARE
	  start CONSTANT bigint := extract(epoch FROM snowflake.time_of(snowflake.next_id(1))) * 1000;
	  ms bigint;
	  stored bigint;
	BEGIN
	  FOR ahead IN 1 .. 8000 LOOP
	    ms := start + ahead;
	    PERFORM snowflake.observe(snowflake.make_id(to_timestamp(ms / 1000.0), 1, 0));
	    SELECT last_value INTO stored FROM snowflake.high_water;
	    IF stored <= ms THEN
	      INSERT INTO lowered VALUES (ms, stored);
	    END IF;
	  END LOOP;
	END
	$$;
	INSERT INTO finished VALUES (1);
	SQL
ok($node->finish_writer($_)->{well}, 'set_mark() never fails in a session that calls it all the time') foreach @setters;
is($node->safe_psql('postgres', 'SELECT count(*) FROM lowered'), '0', 'set_mark() never sets the mark below an observed id');

# The library must not prevent DROP SEQUENCE for a sequence whose file is missing.
my $file = $node->data_dir . '/' . $node->safe_psql('postgres', "CREATE SEQUENCE broken; CHECKPOINT; SELECT pg_relation_filepath('broken')");
unlink $file or BAIL_OUT("could not remove $file: $!");
$node->safe_psql('postgres', 'DROP SEQUENCE broken');

# A committed CREATE EXTENSION survives a crash, even with synchronous_commit = off. Calls of next_ids() that do not
# raise the high-water mark flush no WAL.
$node->reconfigure('snowflake.reserve' => "'5s'");
$node->safe_psql('postgres', 'CREATE DATABASE hasty');
$node->safe_psql('hasty', 'CREATE EXTENSION snowflake');
foreach my $round (1 .. 3)
{
	$node->mint($ledger, 'SELECT unnest(snowflake.next_ids(1, 1000))', 'hasty');
	# pg_switch_wal() flushes the WAL of DROP EXTENSION and CREATE EXTENSION, but not the WAL of the COMMIT that follows.
	$node->safe_psql('hasty', <<~'SQL');
		SET synchronous_commit = off;
		DROP EXTENSION IF EXISTS snowflake;
		BEGIN;
		CREATE EXTENSION snowflake;
		SELECT pg_switch_wal();
		COMMIT;
		SQL
	$node->mint($ledger, 'SELECT unnest(snowflake.next_ids(1, 1000))', 'hasty');
	$node->kill_all;
	$node->clock->step(-1);
	$ledger->new_server_run;
	$node->start;
	is($node->safe_psql('hasty', "SELECT count(*) FROM pg_extension WHERE extname = 'snowflake'"), '1', 'a committed CREATE EXTENSION survives the crash');
	$node->safe_psql('hasty', 'CREATE EXTENSION IF NOT EXISTS snowflake');
	$node->mint($ledger, 'SELECT unnest(snowflake.next_ids(1, 1000))', 'hasty');
}

# Removes the high-water mark's sequence from the extension, and then drops the sequence. If the clock is stepped back
# during a crash restart, new ids are still above the dropped high-water mark.
$node->mint($ledger, 'SELECT unnest(snowflake.next_ids(1, 1000000))', 'hasty') for 1 .. 2;
$node->safe_psql('hasty', 'ALTER EXTENSION snowflake DROP SEQUENCE snowflake.high_water; ALTER SEQUENCE snowflake.high_water RENAME TO kept; ALTER SEQUENCE snowflake.kept SET SCHEMA public');
$node->refuses('SELECT snowflake.next_id(1)', { sqlstate => '55000', message => 'lacks a sequence or table', hint => 'Do not drop the extension' }, 'next_id() reports that the mark was removed from the extension', 'hasty');
$node->safe_psql('hasty', 'DROP SEQUENCE kept; DROP EXTENSION snowflake');
my $victim = $node->session;
$node->kill_backend($victim->query_safe('SELECT pg_backend_pid()') =~ s/\s//gr);
$node->clock->step(-5);
$ledger->new_server_run;
$node->safe_psql('hasty', 'CREATE EXTENSION snowflake');
$node->mint($ledger, 'SET snowflake.max_wait = 60000; SELECT snowflake.next_id(1)', 'hasty');
$node->clock->step(5);
$ledger->check(1_000_000, 'ids are unique over dropped marks and crashes');

# A call that fails does not use one of the "snowflake.max_databases" places in shared memory.
$node->safe_psql('postgres', 'DROP DATABASE hasty');
$node->restart;
foreach my $database (qw(a b))
{
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, 'CREATE EXTENSION snowflake');
	$node->refuses('BEGIN READ ONLY; SELECT snowflake.next_id(1)', { sqlstate => '25006', message => 'read-only' }, "$database: next_id() fails in a read-only transaction", $database);
	is($node->safe_psql($database, "SELECT refusals FROM snowflake.refusals WHERE cause = 'read_only'"), '1', "$database: the refusal is counted");
}
is($node->safe_psql('postgres', 'SELECT count(*) FROM snowflake.databases'), '0', 'databases in which every call failed have no slot');
$node->mint($ledger, 'SELECT snowflake.next_id(1)', $_) foreach qw(a b);
$node->mint($ledger);
is($node->safe_psql('postgres', 'SELECT string_agg(database, $$ $$ ORDER BY database) FROM snowflake.databases WHERE mark > now() - interval $$1 min$$'),
	'a b postgres', 'the view databases shows the databases that have a slot');

my ($revoke) = slurp_file("$FindBin::RealBin/../doc/questions.md") =~ /```sql\n(REVOKE EXECUTE.*?)```/s;
$node->safe_psql('postgres', $revoke);
foreach my $sql ('SELECT snowflake.next_id()', 'SELECT snowflake.next_id(1)', 'SELECT snowflake.next_id(1, 5)', 'SELECT snowflake.next_id_near(5)',
	'SELECT snowflake.next_ids(1, 5)', 'SELECT snowflake.next_ids(1, 5, 5)', 'SELECT snowflake.next_id_in($$[1,2]$$)', 'SELECT snowflake.next_ids_in($$[1,2]$$, 5)',
	'CREATE TEMPORARY TABLE own (id bigint, near bigint); CREATE TRIGGER t BEFORE INSERT ON own FOR EACH ROW EXECUTE FUNCTION snowflake.set_id($$near$$)')
{
	$node->refuses("SET ROLE joe; $sql", { sqlstate => '42501', message => 'permission denied for function' }, "after EXECUTE was revoked a role cannot run $sql");
}
$node->stop;

my $ended = Snowflake::Node->create('ended', conf => "snowflake.epoch = '1970-01-01'\n");
$ended->set_preload(1);
$ended->start;
like($ended->log_content, qr/WARNING:  the id layout has no time values left\n.*DETAIL:  Ids of layout .* can only have times before 2004-/, 'a server whose layout has ended warns at its start, if it preloads the library');
$ended->refuses('CREATE EXTENSION snowflake', { sqlstate => '2200H', message => 'the id layout has no time values left' }, 'CREATE EXTENSION fails if the layout has ended');

done_testing();
