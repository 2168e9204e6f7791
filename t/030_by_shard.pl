# Tests tables that are partitioned by shard, under several layouts, after dumps, and with logical replication.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils qw(slurp_file);
use Snowflake::Node;
use Test::More;

my %parameters = (allows_streaming => 'logical');
my $node = Snowflake::Node->create('main', %parameters);
my $other = Snowflake::Node->create('other', %parameters);

sub create_partitions
{
	my ($table, $modulus) = @_;
	return join '', map { "CREATE TABLE ${table}_$_ PARTITION OF $table FOR VALUES WITH (MODULUS $modulus, REMAINDER $_);\n" }
	  0 .. $modulus - 1;
}

# Counts the rows that are not in the partition of their shard. An id contains the number of its shard in $bits bits,
# beginning with bit $lowest.
sub misplaced
{
	my ($server, $database, $table, $lowest, $bits) = @_;
	return $server->safe_psql($database, <<~SQL);
		SELECT count(*) FROM $table
		 WHERE tableoid::regclass::text <> '${table}_' || ((id >> $lowest) & ((1::bigint << $bits) - 1)) % 16
		SQL
}

# Under each layout, inserts ids with extreme regions, times and sequence numbers in every shard. The partitioned table
# must also accept negative numbers, which are not ids.
foreach (
	[ 'instagram', 13, 10, 0 ],
	[ 'twitter', 5, 12, 5 ],
	[ 'js53', 7, 8, 0 ],
	[ '40/3+10/10', 10, 10, 3 ],
	[ '41/5+8/10', 8, 10, 5 ],
	[ '44/20/0', 20, 0, 0 ],
	[ "30/20/14'\nsnowflake.tick = '1000ms", 20, 14, 0 ],
	[ '40/6+0/12', 0, 12, 6 ])
{
	my ($layout, $shard_bits, $sequence_bits, $region_bits) = @$_;
	$node->start_with("snowflake.layout = '$layout'");
	$layout =~ s/'.*//s;
	(my $database = "l_$layout") =~ tr{/+}{_};
	$node->create_database($database);
	$node->safe_psql($database, "CREATE TABLE t (id bigint PRIMARY KEY) PARTITION BY HASH (id snowflake.by_shard);\n"
		  . create_partitions('t', 16));
	my $time_shift = $sequence_bits + $shard_bits + $region_bits;
	my $rows = $node->safe_psql($database, <<~SQL);
		INSERT INTO t
		SELECT DISTINCT (time << $time_shift) | (region << ${\($sequence_bits + $shard_bits)}) | (shard << $sequence_bits) | sequence
		  FROM generate_series(0::bigint, (1 << $shard_bits) - 1, greatest(1, (1 << $shard_bits) / 5000)) AS shard,
		       unnest(ARRAY[0, ((1 << $region_bits) - 1) / 3, (1 << $region_bits) - 1]::bigint[]) AS region,
		       unnest(ARRAY[0, (1::bigint << 39) - 1]) AS time,
		       unnest(ARRAY[0, (1 << $sequence_bits) - 1]::bigint[]) AS sequence;
		INSERT INTO t VALUES (-1), (-9223372036854775808), (-4096) ON CONFLICT DO NOTHING;
		INSERT INTO t VALUES (9223372036854775807) ON CONFLICT DO NOTHING;
		INSERT INTO t VALUES (snowflake.next_id(0));
		SELECT count(*) > (1 << least($shard_bits, 12)), count(*) = count(DISTINCT id) FROM t;
		SQL
	is($rows, 't|t', "$layout: rows of all shards can be inserted");
	is(misplaced($node, $database, 't', $sequence_bits, $shard_bits), '0', "$layout: each row is in the partition of its shard");
	is($node->safe_psql($database, <<~'SQL'), '0', "$layout: each row is found by its id");
		CREATE FUNCTION found(bigint) RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN count(*) FROM t WHERE id = $1; END';
		SELECT count(*) FROM (SELECT id FROM t ORDER BY hashint8(id) LIMIT 2000) s WHERE found(id) <> 1
		SQL
	is($node->safe_psql($database, "SELECT count(*) FROM t WHERE $_"), '1', "$layout: the row is found by $_")
	  foreach 'id = -1::smallint', 'id = -4096::smallint', 'id = -1::int', 'id = -4096::int', '-1 = id';
}

# If the stored layout of the database is changed, queries, and inserts into the partitions, must fail.
$node->start_with('');
$node->safe_psql('l_instagram', "SELECT setval('snowflake.seal', 1288834974657 * 2012500 + 22 * 57500 + 5 * 2300 + 5 * 92 + 12 * 4), pg_sleep(1.1)");
my %contradiction = (
	sqlstate => '55000',
	message => 'the restored ids have another layout than this database',
	detail => 'CREATE EXTENSION recorded layout 41/13/10.*The ids in the dump have layout 41/5\+5/12',
	hint => 'In a new database');
my $id = 123 << 10;
$node->refuses($_->[1], \%contradiction, "under another seal this fails: $_->[0]", 'l_instagram')
  foreach [ 'INSERT', "INSERT INTO t VALUES ($id + 1)" ],
  [ 'COPY', "COPY t FROM PROGRAM 'echo 7'" ],
  [ 'UPDATE', "UPDATE t SET id = id + 1024 WHERE id = $id" ],
  [ 'SELECT', "SELECT * FROM t WHERE id = $id" ],
  [ 'a generic plan', "SET plan_cache_mode = force_generic_plan; PREPARE p(bigint) AS SELECT * FROM t WHERE id = \$1; EXECUTE p($id)" ],
  [ 'a partition', "INSERT INTO t_11 VALUES ($id + 1)" ],
  [ 'ATTACH', "ALTER TABLE t DETACH PARTITION t_3; INSERT INTO t_3 VALUES (1); ALTER TABLE t ATTACH PARTITION t_3 FOR VALUES WITH (MODULUS 16, REMAINDER 3)" ];
$node->safe_psql('l_instagram', <<~'SQL');
	SELECT setval('snowflake.seal', last_value), pg_sleep(1.1) FROM snowflake.seal_local;
	DELETE FROM t_3 WHERE id = 1;
	ALTER TABLE t ATTACH PARTITION t_3 FOR VALUES WITH (MODULUS 16, REMAINDER 3)
	SQL
is(misplaced($node, 'l_instagram', 't', 10, 13), '0', 'after the tests under another seal each row is in the partition of its shard');

$node->start_with("snowflake.layout = 'instagram'");
$node->create_database('app');
$node->safe_psql('app', <<~'SQL' . create_partitions('photos', 16) . create_partitions('likes', 16));
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), n int) PARTITION BY HASH (id snowflake.by_shard);
	CREATE TABLE likes (id bigint PRIMARY KEY, photo_id bigint REFERENCES photos) PARTITION BY HASH (id snowflake.by_shard);
	SQL
$node->safe_psql('app', <<~'SQL');
	INSERT INTO photos SELECT snowflake.next_id(n), n FROM generate_series(0, 999) AS n;
	INSERT INTO likes SELECT snowflake.next_id(snowflake.shard_of(id)), id FROM photos;
	SQL
my %dump = map { $_ => $node->basedir . "/$_.sql" } 'partitions', 'root';
$node->command_ok([ 'pg_dump', '-d', $node->connstr('app'), '-f', $dump{partitions} ], 'pg_dump');
$node->command_ok([ 'pg_dump', '--load-via-partition-root', '-d', $node->connstr('app'), '-f', $dump{root} ],
	'pg_dump --load-via-partition-root');

# Restores a dump with psql, which continues after errors, and returns the error messages.
sub restore
{
	my ($dump, $database) = @_;
	$other->safe_psql('postgres', "DROP DATABASE IF EXISTS $database");
	$other->safe_psql('postgres', "CREATE DATABASE $database");
	my $errors = $other->basedir . "/$database.err";
	IPC::Run::run([ 'psql', '-Xq', '-f', $dump, '-d', $other->connstr($database) ], '>', '/dev/null', '2>', $errors);
	return slurp_file($errors);
}
$other->start_with("snowflake.layout = 'instagram'");
foreach my $way ('partitions', 'root')
{
	unlike(restore($dump{$way}, $way), qr/ERROR|FATAL/, "restored by $way: the restore has no error");
	is(misplaced($other, $way, 'photos', 10, 13), '0', "restored by $way: each row is in the partition of its shard");
	is($other->safe_psql($way, 'SELECT count(*), sum(n) FROM likes JOIN photos ON photos.id = photo_id'),
		'1000|499500', "restored by $way: all rows are restored");
	$other->safe_psql($way, 'INSERT INTO photos DEFAULT VALUES');
}

# If the server has another layout than the dump, the partitions reject the restored rows.
$other->start_with("snowflake.layout = '42/8/13'");
like(restore($dump{partitions}, 'partitions'), qr/violates partition constraint/, 'restored under another layout by partitions: the partitions reject rows');
my %restored = (
	sqlstate => '55000',
	message => 'the restored ids have another layout than this database',
	detail => 'partitions may be wrong',
	hint => 'In a new database, create the extension');
restore($dump{root}, 'root');
is($other->safe_psql('root', 'SELECT count(*) FROM photos'), '1000', 'restored under another layout by the root: the rows are restored');
isnt(misplaced($other, 'root', 'photos', 10, 13), '0', 'restored under another layout by the root: rows are in wrong partitions');
$other->refuses($_, \%restored, "restored under another layout by the root: this fails: $_", 'root')
  foreach 'INSERT INTO photos DEFAULT VALUES', 'INSERT INTO photos VALUES (1)', 'SELECT * FROM photos WHERE id = 1',
  'DELETE FROM photos WHERE id = 1', "COPY photos FROM PROGRAM 'echo 1,1' (FORMAT csv)";

$other->start_with("snowflake.layout = 'instagram'");
$node->safe_psql('app', <<~'SQL');
	CREATE TABLE plain (id bigint PRIMARY KEY, n int);
	INSERT INTO plain SELECT snowflake.next_id(n), n FROM generate_series(0, 99) AS n;
	CREATE PUBLICATION p FOR TABLE plain, photos WITH (publish_via_partition_root = true);
	SQL
$other->create_database('applied');
$other->safe_psql('applied', <<~'SQL' . create_partitions('photos', 4) . create_partitions('plain', 16));
	CREATE TABLE photos (id bigint PRIMARY KEY, n int) PARTITION BY HASH (id snowflake.by_shard);
	CREATE TABLE plain (id bigint PRIMARY KEY, n int) PARTITION BY HASH (id snowflake.by_shard);
	SQL
$other->safe_psql('applied', 'CREATE SUBSCRIPTION s CONNECTION $c$' . $node->connstr('app') . '$c$ PUBLICATION p');
$other->wait_for_subscription_sync($node, 's', 'applied');
$node->safe_psql('app', <<~'SQL');
	INSERT INTO photos (n) SELECT generate_series(1000, 1099);
	INSERT INTO plain SELECT snowflake.next_id(n), n FROM generate_series(100, 999) AS n;
	UPDATE plain SET n = -n WHERE n % 2 = 0;
	UPDATE plain SET id = id + 1025 WHERE n % 5 = 0;
	DELETE FROM plain WHERE n % 3 = 0;
	SQL
$node->wait_for_catchup('s');
foreach my $table ('plain', 'photos')
{
	my $digest = "SELECT count(*), md5(string_agg(id || ' ' || n, ',' ORDER BY id)) FROM $table";
	is($other->safe_psql('applied', $digest), $node->safe_psql('app', $digest), "$table was replicated");
}
is(misplaced($other, 'applied', 'plain', 10, 13), '0', 'logical replication applies rows of an ordinary table to the partition of their shard');
is($other->safe_psql('applied', "SELECT count(*) FROM photos WHERE tableoid::regclass::text <> 'photos_' || ((id >> 10) & 8191) % 4"),
	'0', 'logical replication applies rows to the right partition if the modulus differs');
$other->safe_psql('applied', 'DROP SUBSCRIPTION s');

# While tables are partitioned by snowflake.by_shard, DROP EXTENSION fails, even if the server does not preload the
# library.
$node->safe_psql('app', 'CREATE EXTENSION hstore; CREATE ROLE someone');
$node->stop;
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->start;
my %kept = (sqlstate => '2BP01', message => 'tables are partitioned by it', detail => 'dropped with their rows: .*public\.photos');
$node->refuses($_, \%kept, "not preloaded: refused because of the partitioned tables: $_", 'app') foreach
  'DROP EXTENSION snowflake CASCADE', 'DROP EXTENSION hstore, snowflake CASCADE', 'DROP EXTENSION plpgsql CASCADE',
  'SET session_replication_role = replica; DROP EXTENSION snowflake CASCADE', 'SET snowflake.layout = instagram; DROP EXTENSION snowflake CASCADE',
  'DO $$ BEGIN DROP EXTENSION snowflake CASCADE; END $$';
is($node->safe_psql('app', 'SELECT count(*), (SELECT count(*) FROM likes) FROM photos'), $node->safe_psql('app', 'SELECT 1100, 1000') , 'not preloaded: no row is lost by the refused commands');
$node->safe_psql('app', 'BEGIN; DROP TABLE likes, photos; DROP EXTENSION hstore; DROP OWNED BY someone; DROP EXTENSION snowflake CASCADE; ROLLBACK');
pass('not preloaded: the extension can be dropped after the partitioned tables');
$node->safe_psql('l_js53', 'DROP TABLE t; DROP EXTENSION snowflake');
is($node->safe_psql('l_js53', 'SELECT count(*) FROM pg_event_trigger'), '0', 'DROP EXTENSION also drops the event trigger');
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'snowflake'");
$node->restart;
$node->safe_psql('app', 'DROP EXTENSION hstore');
pass('preloaded: another extension can be dropped');

done_testing();
