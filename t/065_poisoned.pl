# Tests that a routine of snowflake, called by a superuser, does not run a table owner's code as superuser. The role joe
# attaches a function to his tables in every possible way, and a superuser calls every routine that reads or changes
# tables.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use Snowflake::Node;
use Test::More;

my $node = Snowflake::Node->create_running('main');
$node->add_tools;
my %seen;    # for each kind of attached code, the roles that have run the code

# Runs a statement as the superuser, and returns the messages of psql.
sub call
{
	my ($sql) = @_;
	my ($result, $out, $errors) = $node->psql('postgres', $sql);
	$seen{$1}{$2} = 1 while $errors =~ /poison "([^"]+)" runs as (\w+)/g;
	return $errors;
}

sub is_superuser { return $node->safe_psql('postgres', q{SELECT rolsuper FROM pg_roles WHERE rolname = 'joe'}) }

# The function attack() tries to make the role joe a superuser.
my $superuser = $node->safe_psql('postgres', 'SELECT current_user');
$node->safe_psql('postgres', <<~'SQL');
	CREATE ROLE joe LOGIN;
	CREATE SCHEMA joe AUTHORIZATION joe;
	CREATE SCHEMA shared;
	GRANT USAGE ON SCHEMA shared TO joe;
	CREATE SCHEMA owned AUTHORIZATION joe;
	CREATE FUNCTION joe.attack(what text) RETURNS integer LANGUAGE plpgsql AS $$
	DECLARE
	  try text;
	BEGIN
	  RAISE WARNING 'poison "%" runs as %', what, current_user;
	  FOREACH try IN ARRAY '{RESET ROLE, RESET SESSION AUTHORIZATION, SET ROLE NONE, ALTER ROLE joe SUPERUSER}'::text[] LOOP
	    BEGIN
	      EXECUTE try;
	    EXCEPTION WHEN OTHERS THEN
	      NULL;
	    END;
	  END LOOP;
	  RETURN 1;
	END $$;
	CREATE FUNCTION joe.evil(what text) RETURNS integer IMMUTABLE LANGUAGE plpgsql AS 'BEGIN PERFORM joe.attack(what); RETURN 1; END';
	CREATE FUNCTION joe.fire() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN PERFORM joe.attack('trigger'); RETURN NEW; END$$;
	-- Called while a page of the index is locked, it must not begin a subtransaction.
	CREATE FUNCTION joe.compare(bigint, bigint) RETURNS integer IMMUTABLE LANGUAGE plpgsql AS $$BEGIN
	  RAISE WARNING 'poison "operator class" runs as %', current_user;
	  RETURN btint8cmp($1, $2);
	END$$;
	CREATE OPERATOR CLASS joe.int8_ops FOR TYPE bigint USING btree AS
	  OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 joe.compare(bigint, bigint);
	ALTER FUNCTION joe.attack OWNER TO joe;
	ALTER FUNCTION joe.evil OWNER TO joe;
	ALTER FUNCTION joe.fire OWNER TO joe;
	ALTER FUNCTION joe.compare OWNER TO joe;
	SQL

# Returns the statements that attach joe's functions to a table, for example as triggers and rules. With the option
# "template", the statements create no rules and policies, because create_shards() does not copy rules and policies.
sub poisoned
{
	my ($name, $columns, %with) = @_;
	my $suffix = $with{suffix} // '';
	my $sql = <<~"SQL";
		CREATE TABLE $name ($columns, n integer DEFAULT 1, d integer DEFAULT joe.evil('default'), o joe.positive DEFAULT 1,
		  g integer GENERATED ALWAYS AS (n + joe.evil('generated column')) STORED,
		  CHECK (joe.evil('check') = 1), CHECK (n > joe.evil('check of a column') - 9)) $suffix;
		CREATE INDEX ON $name (n) WHERE joe.evil('index predicate') = 1;
		CREATE INDEX ON $name ((n + joe.evil('index expression')));
		CREATE STATISTICS ${name}_s ON (n + joe.evil('statistics')), n FROM $name;
		CREATE TRIGGER fire BEFORE INSERT OR UPDATE ON $name FOR EACH ROW EXECUTE FUNCTION joe.fire();
		SQL
	$sql .= "CREATE INDEX ON $name (id joe.int8_ops);\n" unless $with{integer};
	$sql .= <<~"SQL" unless $with{template};
		CREATE RULE also AS ON INSERT TO $name DO ALSO SELECT joe.evil('rule');
		CREATE POLICY hidden ON $name USING (joe.evil('policy') = 1);
		ALTER TABLE $name ENABLE ROW LEVEL SECURITY;
		SQL
	return $sql;
}
my $minting = 'id bigint DEFAULT snowflake.next_id(5)';
# Runs statements after a login as the role joe. In a superuser's session after SET ROLE, joe's functions could run
# RESET ROLE to become superuser.
sub as_joe { return $node->safe_psql('postgres', 'SET client_min_messages = error; SET search_path = joe; ' . join("\n", @_), extra_params => [ '-U', 'joe' ]) }
as_joe(
  q{CREATE DOMAIN joe.positive AS integer CHECK (VALUE >= joe.evil('domain'));},
  poisoned('joe.photos', "$minting PRIMARY KEY"),
  poisoned('joe.serial', 'id bigserial PRIMARY KEY'),
  poisoned('joe.narrow', 'id serial PRIMARY KEY', integer => 1),
  poisoned('joe.refers', 'id integer REFERENCES joe.narrow', integer => 1),
  poisoned('joe.old', "$minting, made timestamptz"),
  poisoned('joe.bare', $minting),
  poisoned('joe.parted', $minting, suffix => 'PARTITION BY RANGE (id)'),
  poisoned('joe.hashed', $minting, suffix => 'PARTITION BY HASH (id snowflake.by_shard)'),
  poisoned('owned.t', 'id bigint PRIMARY KEY DEFAULT snowflake.next_id(0), made date', template => 1),
  poisoned('owned.u', 'id bigint REFERENCES owned.t', template => 1),
  <<~'SQL');
	CREATE INDEX ON joe.old (made);
	CREATE TABLE joe.keyed (id bigint DEFAULT snowflake.next_id(5)) PARTITION BY RANGE ((id + joe.evil('partition key')));
	CREATE TABLE joe.by_compare (id bigint DEFAULT snowflake.next_id(5)) PARTITION BY RANGE (id joe.int8_ops);
	CREATE TABLE joe.by_hash (id bigint DEFAULT snowflake.next_id(5)) PARTITION BY HASH ((id + joe.evil('partition key')) snowflake.by_shard);
	CREATE VIEW joe.viewed AS SELECT id, joe.evil('view') AS e FROM joe.photos WHERE joe.evil('view') = 1;
	CREATE VIEW joe.seen AS SELECT id, joe.evil('view') AS e FROM joe.narrow WHERE joe.evil('view') = 1;
	CREATE MATERIALIZED VIEW joe.stored AS SELECT id, joe.evil('view') AS e FROM joe.seen;
	CREATE INDEX ON joe.stored (id) WHERE joe.evil('index predicate') = 1;
	CREATE MATERIALIZED VIEW joe.kept AS SELECT id FROM joe.photos;
	CREATE INDEX ON joe.kept (id) WHERE joe.evil('index predicate') = 1;
	CREATE TABLE joe.child () INHERITS (joe.bare);
	INSERT INTO joe.photos DEFAULT VALUES;
	INSERT INTO joe.photos DEFAULT VALUES;
	INSERT INTO joe.serial DEFAULT VALUES;
	INSERT INTO joe.narrow DEFAULT VALUES;
	INSERT INTO joe.refers VALUES (1);
	INSERT INTO joe.child DEFAULT VALUES;
	INSERT INTO joe.old SELECT NULL, now() - n * interval '1 h' FROM generate_series(1, 3) AS n;
	INSERT INTO joe.bare VALUES (DEFAULT), (NULL);
	SQL
# Makes a foreign table, and a table of joe in a schema in which joe may not create objects.
my $foreign = $node->basedir . '/ids.csv';
PostgreSQL::Test::Utils::append_to_file($foreign, "5\n7\n");
$node->safe_psql('postgres', 'GRANT CREATE ON SCHEMA shared TO joe');
as_joe(poisoned('shared.t', 'id bigint PRIMARY KEY DEFAULT snowflake.next_id(0), number integer GENERATED ALWAYS AS IDENTITY, made date', template => 1));
$node->safe_psql('postgres', <<~"SQL");
	REVOKE CREATE ON SCHEMA shared FROM joe;
	CREATE EXTENSION file_fdw;
	CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
	CREATE FOREIGN TABLE joe.remote (id bigint DEFAULT snowflake.next_id(5), CHECK (joe.evil('check') = 1)) SERVER files OPTIONS (filename '$foreign');
	ALTER FOREIGN TABLE joe.remote OWNER TO joe;
	-- Tables and a view of the superuser that have to do with joe's.
	CREATE SCHEMA super;
	CREATE TABLE super.narrow (id serial PRIMARY KEY);
	GRANT USAGE ON SCHEMA super TO joe;
	GRANT REFERENCES ON super.narrow TO joe;
	CREATE TABLE super.parted (id bigint, photo bigint REFERENCES joe.photos) PARTITION BY RANGE (id);
	CREATE VIEW super.viewed AS SELECT id FROM joe.photos;
	CREATE TABLE shared.s (id bigint REFERENCES shared.t);
	SQL
as_joe(poisoned('joe.refers_too', 'id integer REFERENCES super.narrow', integer => 1));

# Checks that the attack succeeds without routines of snowflake. If a superuser runs plain statements on tables of the
# role joe, joe's functions run as superuser.
call($_) foreach
  'ALTER TABLE joe.photos FORCE ROW LEVEL SECURITY; SET ROLE joe; SELECT FROM joe.photos; RESET ROLE; ALTER TABLE joe.photos NO FORCE ROW LEVEL SECURITY',
  'SELECT max(id) FROM joe.photos', 'INSERT INTO joe.bare DEFAULT VALUES', 'ANALYZE joe.old', 'SELECT FROM joe.viewed', 'INSERT INTO joe.keyed DEFAULT VALUES';
is(join(', ', sort keys %seen),
	'check, check of a column, default, domain, generated column, index expression, index predicate, operator class, partition key, policy, rule, statistics, trigger, view',
	'every kind of code runs if a superuser uses the tables directly');
ok($seen{'index predicate'}{$superuser}, 'an index predicate runs with the rights of the superuser who plans a query');
is(is_superuser(), 't', 'the attack has made joe a superuser');

# Lists the arguments for the call of each routine. Each call runs in a new session without cached plans.
my $photos = q{'joe.photos'};
my ($narrow, $refers) = map { qq('{"(joe.$_,id)"}') } qw(narrow refers);
my $step = q('{"(joe.narrow,10,\"LOCK TABLE joe.narrow\")"}');
my @roots = ("'owned'", "'shared'");
my @definable = ((map { "'$_', (SELECT min(oid) FROM $_)" } qw(pg_trigger pg_policy pg_rewrite)), map { "'pg_class', 'joe.$_'::regclass" } qw(seen kept));
my %calls = (
	observe_all => [''],
	(map { $_ => [''] } qw(refuse_unreadable warn_of_unread)),
	audited_column => ["$photos, 'id'"],
	check_sample => ["$photos, 50"],
	refuse_views_of_others => [ map { "'$_'" } qw(joe.viewed super.viewed) ],
	adopted_columns => [''],
	minting_columns => [''],
	filled_columns => [''],
	ends_of => [ map { "'joe.$_', 'id'" } qw(photos serial narrow old bare parted hashed keyed by_compare viewed kept remote child) ],
	owner_of => [$photos],
	validate_empty => ["'joe.refers', 'refers_id_fkey'"],
	audited => [ map { "'joe.$_', 'id', 100, 0, 1" } qw(photos bare viewed remote) ],
	audit => [ (map { "'joe.$_', 'id'" } qw(photos bare parted keyed viewed kept remote)), "$photos, sample => 50", "'super.viewed', 'id'" ],
	column_of => ["$photos, 'id'"],
	refuse_inheritance => ["$photos, 'a', 'b'"],
	(map { $_ => [ $narrow, $refers ] } qw(attributes_of referring_columns named_columns dependents hindrances column_hindrances narrow_calls limits_on_ids try_wide changes_of
		foreign_keys_of widen_steps)),
	(map { $_ => [ @definable ] } qw(create_statement recreate_statements)),
	grants_on_view => [ "'joe.seen'::regclass", "'joe.kept'::regclass" ],
	view_hindrances => ["'{joe.seen,joe.kept,joe.viewed}'"],
	with_children => [$photos],
	(map { $_ => ["('joe.narrow', 'id')"] } qw(attribute_of sequences_of root_of)),
	refuse_wide => ["$narrow, true, false"],
	refuse_connected => ["$narrow, false"],
	refuse_key => ["$photos, snowflake.column_of($photos, 'id')"],
	refuse_rights => ["$step"],
	plan => [ "ARRAY[('joe.narrow', 'id')::snowflake.key_column], NULL, '{}', false, 5, true, false, false, '1 min'",
		"NULL, '{joe}', '{joe.refers_too}', true, 5, true, false, false, '1 min'" ],
	other_uses => ["'joe.serial_id_seq', $narrow"],
	kept_sequences => ["$narrow, false"],
	lock_steps => ["$narrow, $narrow"],
	mint_steps => ["('joe.narrow', 'id'), 5, false"],
	run_plan => [ map { "$step, $_, now()" } qw(true false) ],
	refuse_locked => ["$step, 1, 'a'"],
	carry_out => ["'{}', $narrow, 5, true, false, false, '1 min'"],
	narrow_routines => ["'{joe.photos}'"],
	remaining => ["$narrow, '{}', false"],
	plan_lines => ["$step, $narrow"],
	keys_of_schemas => ["'{joe}', '{}', '{sequence}'"],
	columns_of_schemas => ["$narrow, '{joe}', '{joe.refers_too}', true"],
	remaining_keys => ["'{joe}', '{}', 5"],
	transactions => ["$narrow, $narrow"],
	adopt_schemas => [ "'{joe}', 5, leave_out => '{joe.refers_too}', rewrite => true, dry_run => true",
		"'{joe}', 5, leave_out => '{joe.refers_too,joe.photos,joe.bare,joe.child}', rewrite => true" ],
	refuse_future_ids => ["'joe.serial', 'id'"],
	adopt_steps => [ map { qq('{"($_,id)"}', NULL, 5, true, true, false) } qw(joe.narrow super.narrow joe.serial) ],
	refuse_shared_function => ["$photos, 1::smallint"],
	adopt => [ "'joe.narrow', 5, rewrite => true, dry_run => true", "'joe.narrow', 5, rewrite => true", "'joe.serial', 5", "'super.narrow', 5, rewrite => true" ],
	has_ids_of_origin => [ "'joe.photos', 'id', 31, 5, -1", "'joe.old', 'id', 31, 5, 7" ],
	column_of_origin => ['31, 5, -1'],
	free_region => ['7, 0'],
	refuse_origin => ['30, 7, 0, NULL'],
	reserve_origin => ["'joe.old', 'id', 7, NULL"],
	late_id => ["'2026-01-01', 9"],
	check_backfilled => ["'joe.old', snowflake.column_of('joe.old', 'id')"],
	check_times => ["'joe.old', snowflake.column_of('joe.old', 'made'), 'id', false"],
	check_backfill => ["'joe.old', 'id', 'made', 5, NULL, false, 10"],
	lock_batch => ["'joe.old', 'id', 'made', '', now() - interval '1 d', now(), 1"],
	place_batch => ["(SELECT b FROM snowflake.backfills AS b WHERE shard = 5), now(), '{}', '{}', now()"],
	write_batch => ["'joe.old', 'id', '{}', '{}'"],
	backfill_batch => ["'joe.old', 'id', 'made', 5, (SELECT region FROM snowflake.backfills WHERE shard = 5), clock_timestamp(), false, 2"],
	tell_backfill => ["'joe.old', 'id', 'made', false, 1"],
	backfill => ["'joe.old', 'id', 'made', 5"],
	refuse_partition_key => [ map { "'joe.$_', 'r'" } qw(parted keyed by_compare hashed photos) ],
	lock_partitioning => [ map { "'joe.$_'" } qw(parted hashed keyed) ],
	partition_name => ["'joe.parted', 'x'"],
	add_partition => [ "'joe.parted', 'parted_low', 'FOR VALUES FROM (''0'') TO (''9'')'" ],
	partitions_before => ["'joe.parted', 10"],
	refuse_plain_numbers => ["'joe.parted', 'joe.parted_low'"],
	limit_waits => ['clock_timestamp()'],
	drop_partition => ["'joe.parted', 'joe.parted_low', 8, clock_timestamp() + interval '1 minute'"],
	drop_time_partitions => [ "'joe.parted', '2026-01-01', dry_run => false", map { "'$_', '2026-01-01'" } qw(joe.keyed joe.by_compare super.parted) ],
	create_time_partitions => [ map { "'$_', '1 month'" } qw(joe.parted joe.keyed joe.by_compare joe.photos super.parted) ],
	create_partitions => [ map { "'joe.$_', 2" } qw(hashed by_hash photos) ],
	definition_of => ["'pg_constraint', (SELECT min(oid) FROM pg_constraint WHERE conrelid = 'owned.t'::regclass), 'owned'"],
	names_shard => ["'pg_constraint', (SELECT min(oid) FROM pg_constraint WHERE conrelid = 'owned.t'::regclass), ''"],
	statements_of => ["'owned.t', 3"],
	(map { $_ => ["'owned.t', 3"] } qw(columns_of constraint_statements table_statements)),
	(map { $_ => ["'owned.t'"] } qw(comment_statements privilege_statements trigger_statements)),
	column_value => ["'owned.t', 1::smallint, 3"],
	(map { $_ => [ @roots, "'joe'" ] } qw(odd_objects odd_tables shard_defaults shard_domains shard_expressions uses_of_template)),
	check_locks => [ map { "$_, '[0,2)'" } @roots ],
	refuse_partition => ["'joe.parted', 'joe.parted_low', 'FOR VALUES FROM (''0'') TO (''9'')'"],
	shard_checks => ["'owned.t', 3"],
	uncopyable => [ @roots, "'joe'" ],
	refuse_creators => [ @roots, "'joe'" ],
	check_template => [ map { "$_, '[0,2)', 'a_', false, false" } @roots ],
	make_scratch => [q{'joe'::regrole}],
	run_steps => ["'owned.t', 3, '{0,1,2}', true, 'scratch, joe'"],
	make_table => [ "'owned.t', 3, 'scratch'", "'shared.t', 3, 'scratch'" ],
	make_references => ["'owned.t', 3, 'scratch'"],
	make_shard => [ "'owned', 3, 'a_'", "'shared', 3, 'b_'" ],
	create_shard => [ "'owned', 4, 'a_'", "'shared', 4, 'b_'" ],
	create_shards => [ "'owned', '[0,6)', 'a_'", "'shared', '[0,6)', 'b_'", "'joe', '[0,1)', 'c_', partial => true", "'owned', '[0,6)', 'a_'", "'shared', '[0,6)', 'b_', commit_each => true" ],
	printed_again => [ "'owned.t', 3", "'shared.t', 3", "'joe.photos', 3" ],
	open_schema => ["'scratch'"],
	dress_schema => ["(SELECT n FROM pg_namespace AS n WHERE nspname = 'owned'), 'scratch', true"],
	owner_of_objects => ["'a_3'"],
	refuse_effects_elsewhere => ["'a_3', '{}', '{}'"],
	refuse_other_defaults => ["'a_3', 3"],
	warn_of_unlike => ["'owned', 'a_3', 3"],
	unlike => [ "'owned.t', 'joe.photos', 3", "'owned.t', 'a_3.t', 4" ],
	schemas_of_shards => ["'[0,2)', 'a_'"],
	alter_shard => ["'ALTER TABLE t ADD COLUMN one integer DEFAULT 5', 'a_3', 3, ''"],
	alter_shards => [ map { my $prefix = $_; map { "'$_', '[0,6)', '$prefix'" } 'ALTER TABLE t ADD COLUMN two integer DEFAULT 5, ADD CHECK (n > 0)',
		'ALTER TABLE t ALTER made TYPE timestamptz', 'CREATE INDEX ON t (d)', 'CREATE TABLE v (LIKE t INCLUDING ALL)', 'DROP TABLE IF EXISTS v' } 'a_', 'b_' ],
	run_as => ["'joe'::regrole, 'SELECT FROM joe.photos; DELETE FROM joe.bare WHERE id IS NULL; INSERT INTO joe.photos DEFAULT VALUES'"],
	query_as => ["'joe'::regrole, 'SELECT max(id) FROM joe.photos'"],);
# Lists the routines that neither read nor change a table of a user.
my @none = qw(revoke_default_privileges type_for_ids tell_plan created_within has_id schema_of with_shard refuse_null refuse_snapshot wide_type is_of_application names_id tell_remaining refuse_schemas decoder_sql template_sql fill_template layout_words generator_sql tick_shift refuse_engine counter_words engine_words engine_template owns_shard check_origin keep_origin
	check_late_time check_shard_range check_step first_kept_id first_start);

# Routines that create objects are called before routines that need the objects.
my @found = map { [ split /\|/ ] } split /\n/, $node->safe_psql('postgres', <<~'SQL');
	SELECT proname, prokind, proretset AND prorettype = 'record'::regtype AND proallargtypes IS NULL
	  FROM pg_proc AS p JOIN pg_depend ON classid = 'pg_proc'::regclass AND objid = p.oid AND deptype = 'e'
	 WHERE refobjid IN (SELECT oid FROM pg_extension WHERE extname ~ '^snowflake')
	   AND (prolang <> (SELECT oid FROM pg_language WHERE lanname = 'c')
	        OR EXISTS (SELECT FROM unnest(proargtypes) AS a JOIN pg_type AS t ON t.oid = a
	                    WHERE typtype = 'c' OR a = ANY ('{regclass,regnamespace,regrole,oid,name}'::regtype[])))
	 ORDER BY proname IN ('alter_shards', 'adopt', 'adopt_schemas', 'carry_out', 'backfill'), proname ~ '^tell|_batch$', proname IN ('unlike', 'alter_shard', 'schemas_of_shards'), p.oid
	SQL
my %names = map { $_->[0] => 1 } @found;
is(join(' ', grep { !$calls{$_} } sort keys %names), join(' ', sort @none), 'every routine that can use a user table is called here');
is(join(' ', grep { !$names{$_} } sort keys %calls), '', 'every routine that is called here exists');

$node->safe_psql('postgres', 'ALTER ROLE joe NOSUPERUSER; CREATE SCHEMA scratch AUTHORIZATION joe');
%seen = ();
my %done;
foreach my $routine (grep { $calls{ $_->[0] } } @found)
{
	my ($name, $kind, $shapeless) = @$routine;
	foreach my $arguments ($done{$name}++ ? () : @{ $calls{$name} })
	{
		my $call = "snowflake.$name($arguments)";
		my $errors = call($kind eq 'p' ? "CALL $call" : "SELECT * FROM $call" . ($shapeless eq 't' ? ' AS r (a bigint)' : ''));
		my @others = $errors =~ /poison "[^"]*" runs as (?!joe\b)\w+/g;
		push @others, 'joe is a superuser' if is_superuser() eq 't';
		push @others, $1 while $errors =~ /(syntax error|XX000|function snowflake\.\S+ does not exist)/g;
		is("@others", '', "no code of joe runs as another role in $call") or $node->safe_psql('postgres', 'ALTER ROLE joe NOSUPERUSER');
		note($1) if $errors =~ /(ERROR: .*)/;
	}
}
ok($seen{$_}{joe}, "code of this kind did run as joe: $_") foreach 'check', 'index predicate', 'generated column', 'domain', 'trigger', 'view';

# Checks that create_shards() and the other routines have changed the tables of joe.
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_class WHERE relname = 't' AND relnamespace::regnamespace::text ~ '^[ab]_[0-5]$' AND relowner = 'joe'::regrole}),
	12, 'create_shards() has made the tables, and joe owns them');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_attribute JOIN pg_class AS c ON c.oid = attrelid WHERE relname = 't' AND relnamespace::regnamespace::text ~ '^[ab]_[0-5]$' AND attname = 'two'}),
	12, 'alter_shards() has altered the tables');
is($node->safe_psql('postgres', q{SELECT count(*) FROM joe.old WHERE id IS NULL}), 0, 'backfill() has given ids to all rows');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_inherits JOIN pg_class AS c ON c.oid = inhrelid WHERE inhparent IN ('joe.parted'::regclass, 'joe.hashed'::regclass) AND relowner = 'joe'::regrole}),
	6, 'the routines for partitions have made and dropped partitions, and joe owns them');
is($node->safe_psql('postgres', q{SELECT string_agg(format_type(atttypid, NULL), ' ') FROM pg_attribute WHERE attrelid IN ('joe.narrow'::regclass, 'joe.refers'::regclass, 'joe.serial'::regclass) AND attname = 'id'}),
	'bigint bigint bigint', 'adopt() has changed the columns to bigint');
is($node->safe_psql('postgres', q{SELECT lowest = (SELECT min(id) FROM joe.photos) AND highest = (SELECT max(id) FROM joe.photos) FROM snowflake.ends_of('joe.photos', 'id')}), 't', 'ends_of() returns the ends of a table with an index');
is($node->safe_psql('postgres', q{SELECT lowest = (SELECT min(id) FROM joe.bare) AND highest = (SELECT max(id) FROM joe.bare) FROM snowflake.ends_of('joe.bare', 'id')}), 't', 'ends_of() returns the ends of a table without an index, with its child table');
is($node->safe_psql('postgres', q{SELECT lowest, highest FROM snowflake.ends_of('joe.remote', 'id')}), '5|7', 'ends_of() returns the ends of a foreign table');

done_testing();
