# Tests COPY into a table whose column default mints ids. A COPY that mints ids must write as much WAL as a COPY whose
# file contains the ids. Each row must get a different id, even in statements that triggers run during a COPY.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Node;
use Test::More;

my $node = Snowflake::Node->create('main', allows_streaming => 'logical', conf => <<~'CONF');
	snowflake.max_lead = 60s
	snowflake.default_shard = 5
	full_page_writes = off
	CONF
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake; CREATE ROLE joe; GRANT pg_read_server_files TO joe');

my $rows  = 40_000;
my $file  = $node->basedir . '/rows.txt';
my $short = $node->basedir . '/short.txt';
append_to_file($file, join '', map { "$_\n" } 1 .. $rows);
append_to_file($short, join '', map { "$_\n" } 1 .. 100);

# Returns how many bytes of WAL a command writes for each row.
sub wal_of
{
	my ($sql) = @_;
	my ($before, $after) = map { (split /\n/)[0] } $node->safe_psql('postgres', <<~SQL) =~ /^(begin .*)\n(?:.*\n)*?(end .*)$/m;
		SELECT 'begin ' || pg_current_wal_insert_lsn();
		$sql;
		SELECT 'end ' || pg_current_wal_insert_lsn();
		SQL
	my ($from, $to) = map { my ($high, $low) = m{ (\w+)/(\w+)$}; hex($high) * 2**32 + hex $low } $before, $after;
	return ($to - $from) / $rows;
}
sub scalar_of { return $node->safe_psql('postgres', @_); }

$node->safe_psql('postgres', "CREATE TABLE supplied (id bigint DEFAULT snowflake.next_id(5), v int); COPY supplied (v) FROM '$file'");
$node->safe_psql('postgres', "COPY supplied TO '$file.ids'; TRUNCATE supplied");
my $supplied = wal_of("COPY supplied FROM '$file.ids'");
cmp_ok($supplied, '>', 15, "COPY with supplied ids writes $supplied bytes of WAL per row");

# Lists column definitions whose default mints ids.
my @forms = (
	[ 'next_id(shard)', 'bigint DEFAULT snowflake.next_id(5)' ],
	[ 'next_id()', 'bigint DEFAULT snowflake.next_id()' ],
	[ 'next_id(shard, after)', 'bigint DEFAULT snowflake.next_id(5, 1)' ],
	[ 'next_id(), named arguments', 'bigint DEFAULT snowflake.next_id(after => NULL, shard => 5)' ],
	[ 'next_id_in()', "bigint DEFAULT snowflake.next_id_in('[3,6)')" ],
	[ 'the default of a domain', 'own_id' ],
	[ 'a domain with a constraint', 'checked_id DEFAULT snowflake.next_id(5)' ],
	[ 'a function that is inlined', 'bigint DEFAULT inlined()' ]);
$node->safe_psql('postgres', <<'SQL');
CREATE DOMAIN own_id AS bigint DEFAULT snowflake.next_id(5);
CREATE DOMAIN checked_id AS bigint CHECK (VALUE > 0);
CREATE FUNCTION inlined() RETURNS bigint LANGUAGE sql AS 'SELECT snowflake.next_id(5)';
SQL
foreach my $form (@forms)
{
	my ($name, $column) = @$form;
	$node->safe_psql('postgres', "CREATE TABLE t (id $column, v int)");
	my $wal = wal_of("COPY t (v) FROM '$file'");
	cmp_ok(abs($wal - $supplied), '<', $supplied / 100, "$name: COPY writes as much WAL as with supplied ids, $wal bytes per row");
	is(scalar_of("SELECT count(*), count(DISTINCT id::bigint), count(DISTINCT v) FROM t; DROP TABLE t"), "$rows|$rows|$rows", "$name: each copied row has its own id");
}

# The planner must not inline an SQL function that uses an id twice, because two ids would be minted.
$node->safe_psql('postgres', <<"SQL");
CREATE FUNCTION pair(x bigint) RETURNS bigint[] LANGUAGE sql IMMUTABLE AS 'SELECT ARRAY[x, x]';
CREATE TABLE pairs (ids bigint[] DEFAULT pair(snowflake.next_id(5)), v int);
COPY pairs (v) FROM '$short';
SET cpu_operator_cost = 0;
COPY pairs (v) FROM '$short';
SET cpu_operator_cost = 1e300;
COPY pairs (v) FROM '$short';
SQL
is(scalar_of('SELECT count(*), count(DISTINCT ids[1]) FROM pairs WHERE ids[1] = ids[2]'), '300|300', 'a function that uses its argument twice gets one id per row');

$node->safe_psql('postgres', <<"SQL");
CREATE TABLE altered (id bigint DEFAULT snowflake.next_id(), v int);
ALTER FUNCTION snowflake.next_id() SET snowflake.default_shard = 9;
COPY altered (v) FROM '$short';
ALTER FUNCTION snowflake.next_id() RESET ALL;
SQL
is(scalar_of('SELECT count(DISTINCT id), min(snowflake.shard_of(id)), max(snowflake.shard_of(id)) FROM altered'), '100|9|9',
	'COPY uses a setting that ALTER FUNCTION gave to next_id()');

# Tests COPY into tables into which COPY cannot insert many rows at once, such as partitioned tables.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE parts (id bigint DEFAULT snowflake.next_id(5), v int) PARTITION BY HASH (v);
CREATE TABLE p0 PARTITION OF parts FOR VALUES WITH (modulus 2, remainder 0);
CREATE TABLE p1 PARTITION OF parts FOR VALUES WITH (modulus 2, remainder 1);
CREATE TABLE before_row (LIKE supplied INCLUDING DEFAULTS);
CREATE FUNCTION same_row() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END';
CREATE TRIGGER same BEFORE INSERT ON before_row FOR EACH ROW EXECUTE FUNCTION same_row();
CREATE TABLE checked (LIKE supplied INCLUDING DEFAULTS, CHECK (snowflake.next_id(5) > id));
CREATE TABLE filtered (LIKE supplied INCLUDING DEFAULTS);
CREATE TABLE generated (LIKE supplied INCLUDING DEFAULTS, text text GENERATED ALWAYS AS (id::text) STORED);
CREATE INDEX ON generated ((id % 7)) WHERE id > 0;
SQL
cmp_ok(wal_of("COPY parts (v) FROM '$file'"), '<', $supplied * 1.05, 'COPY into partitions writes about as much WAL as with supplied ids');
$node->safe_psql('postgres', "COPY $_ (v) FROM '$file'") foreach 'before_row', 'checked', 'generated';
$node->safe_psql('postgres', "COPY filtered (v) FROM '$file' WHERE snowflake.next_id(5) > v");
$node->safe_psql('postgres', "BEGIN; CREATE TABLE frozen (LIKE supplied INCLUDING DEFAULTS); COPY frozen (v) FROM '$file' WITH (FREEZE); COMMIT");
$node->safe_psql('postgres', "CREATE TABLE inside (LIKE supplied INCLUDING DEFAULTS);" .
	"DO \$\$ BEGIN EXECUTE 'COPY inside (v) FROM ''$file'''; END \$\$");
is(scalar_of("SELECT count(*), count(DISTINCT id) FROM $_"), "$rows|$rows", "COPY into table $_: each row has its own id")
  foreach 'parts', 'before_row', 'checked', 'generated', 'filtered', 'frozen', 'inside';

sub distinct_in
{
	my ($name, $sql, $table) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($out, $err);
	$node->psql('postgres', "CREATE TABLE other (v int); INSERT INTO other SELECT generate_series(1, 100); CREATE TABLE many (id bigint, v int);"
		. "CREATE TABLE source (id bigint DEFAULT snowflake.next_id(5), v int CHECK (v < 1000));", stderr => \$err);
	$node->psql('postgres', $sql, stdout => \$out, stderr => \$err, on_error_stop => 0);
	my $answer = scalar_of("SELECT count(id), count(DISTINCT id) FROM $table");
	my ($count, $distinct) = split /\|/, $answer;
	cmp_ok($count, '>=', 100, "$name: $count rows have ids") or diag($err);
	is($distinct, $count, "$name: each row has its own id") or diag($err);
	$node->safe_psql('postgres', 'DROP TABLE other, many, source; DROP FUNCTION IF EXISTS on_row() CASCADE');
	return;
}
my $add_column = 'ALTER TABLE other ADD COLUMN id bigint DEFAULT snowflake.next_id(5)';
my $trigger = 'CREATE TRIGGER t AFTER INSERT ON source FOR EACH ROW EXECUTE FUNCTION on_row()';
distinct_in('ADD COLUMN', $add_column, 'other');
distinct_in('ADD COLUMN after a COPY', "COPY source (v) FROM '$short'; $add_column", 'other');
distinct_in('ADD COLUMN after a COPY that failed', "COPY source (v) FROM '$file'; $add_column", 'other');
distinct_in('ADD COLUMN after a COPY that an exception block caught', <<"SQL", 'other');
DO \$\$ BEGIN BEGIN COPY source (v) FROM '$file'; EXCEPTION WHEN check_violation THEN NULL; END; $add_column; END \$\$
SQL
distinct_in('ADD COLUMN in a trigger of the COPY', <<"SQL", 'other');
CREATE FUNCTION on_row() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN IF new.v = 7 THEN $add_column; END IF; RETURN new; END \$\$;
$trigger; COPY source (v) FROM '$short'
SQL
distinct_in('ADD COLUMN in a statement trigger, before the rows', <<"SQL", 'other');
CREATE FUNCTION on_row() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN $add_column; RETURN NULL; END \$\$;
CREATE TRIGGER t BEFORE INSERT ON source FOR EACH STATEMENT EXECUTE FUNCTION on_row(); COPY source (v) FROM '$short'
SQL
distinct_in('ADD COLUMN in a function of the default', <<"SQL", 'other');
CREATE FUNCTION add_column() RETURNS void LANGUAGE plpgsql AS \$\$ BEGIN $add_column; END \$\$;
CREATE FUNCTION on_row() RETURNS int IMMUTABLE LANGUAGE plpgsql AS \$\$ BEGIN PERFORM add_column(); RETURN 5; END \$\$;
ALTER TABLE source ALTER id SET DEFAULT snowflake.next_id(on_row()); COPY source (v) FROM '$short'
SQL
# A trigger of a COPY plans a statement that mints ids, and the session uses the cached plan again after the COPY.
distinct_in('a plan that a trigger makes', <<"SQL", 'many');
CREATE FUNCTION on_row() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN INSERT INTO many SELECT snowflake.next_id(5), g FROM generate_series(1, 20) AS g; RETURN new; END \$\$;
$trigger; COPY source (v) FROM '$short'; INSERT INTO source (v) SELECT generate_series(1, 20)
SQL
distinct_in('a condition that a plan could evaluate once', <<"SQL", 'many');
CREATE FUNCTION on_row() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN
  INSERT INTO many SELECT (SELECT snowflake.next_id(5) WHERE v > 0), v FROM other WHERE snowflake.next_id(5) > v; RETURN new; END \$\$;
$trigger; COPY source (v) FROM '$short' WHERE v < 3; INSERT INTO source (v) VALUES (1)
SQL
distinct_in('a COPY in a trigger of a COPY', <<"SQL", 'many');
CREATE FUNCTION on_row() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN IF new.v < 3 THEN EXECUTE 'COPY many (v) FROM ''$short'''; END IF; RETURN new; END \$\$;
ALTER TABLE many ALTER id SET DEFAULT snowflake.next_id(5); $trigger; COPY source (v) FROM '$short'
SQL
distinct_in('the COPY around it', "COPY source (v) FROM '$short'; COPY (INSERT INTO many SELECT snowflake.next_id(5), v FROM other RETURNING id) TO '$file.out'", 'many');

# Tests logical replication from another database: first the initial copy, then single rows.
$node->safe_psql('postgres', 'CREATE DATABASE published');
$node->safe_psql('published', "CREATE TABLE told (v int PRIMARY KEY); COPY told FROM '$short'; CREATE PUBLICATION all_told FOR TABLE told;"
	. "SELECT pg_create_logical_replication_slot('told', 'pgoutput')");
$node->safe_psql('postgres', 'CREATE TABLE told (v int PRIMARY KEY, id bigint NOT NULL DEFAULT snowflake.next_id(5)); ' .
	"CREATE SUBSCRIPTION told CONNECTION '" . $node->connstr . " dbname=published' PUBLICATION all_told WITH (create_slot = false, slot_name = 'told')");
$node->poll_query_until('postgres', 'SELECT count(*) = 100 FROM told') or die 'the rows did not come';
$node->poll_query_until('postgres', q{SELECT bool_and(srsubstate IN ('r', 's')) FROM pg_subscription_rel}) or die 'the table was not synchronized';
$node->safe_psql('published', 'INSERT INTO told SELECT generate_series(101, 200)');
$node->poll_query_until('postgres', 'SELECT count(*) = 200 FROM told') or die 'the rows did not come';
is(scalar_of('SELECT count(DISTINCT id) FROM told'), '200', 'logical replication: each copied or applied row has its own id');
$node->safe_psql('postgres', 'DROP SUBSCRIPTION told');

$node->safe_psql('postgres', <<'SQL');
CREATE TABLE joes (id bigint DEFAULT snowflake.next_id(5), v int);
GRANT INSERT ON joes TO joe;
REVOKE EXECUTE ON FUNCTION snowflake.next_id(int) FROM PUBLIC;
SQL
my (undef, undef, $error) = $node->psql('postgres', "SET ROLE joe; COPY joes (v) FROM '$short'");
like($error, qr/permission denied for function next_id$/m, 'COPY by a role without the privilege fails with the name next_id');
$node->safe_psql('postgres', "GRANT EXECUTE ON FUNCTION snowflake.next_id(int) TO joe; SET ROLE joe; COPY joes (v) FROM '$short'");
$node->safe_psql('postgres', "REVOKE EXECUTE ON FUNCTION snowflake.next_id_for_copy(int, internal) FROM PUBLIC; SET ROLE joe; COPY joes (v) FROM '$short'");
is(scalar_of('SELECT count(DISTINCT id) FROM joes'), '200', 'a role that may call only next_id() can mint by COPY');

foreach my $call ('(5, NULL)', '(5, NULL::internal)', "(5, '1')", "(NULL::internal)", "(int4range(3, 6), internal_in('1'))")
{
	(undef, undef, $error) = $node->psql('postgres', "SELECT snowflake.next_id_for_copy$call");
	like($error, qr/(?:type|to) "?internal|function snowflake.next_id_for_copy\(.*\) does not exist/, "SQL cannot call next_id_for_copy$call");
}
unlike(scalar_of("SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef; EXPLAIN (VERBOSE) INSERT INTO joes (v) SELECT v FROM supplied"), qr/for_copy/,
	'no default and no plan shows next_id_for_copy()');

$node->stop;
done_testing();
