# Tests that pg_upgrade transfers the high-water mark and the layout (seal). After pg_upgrade old ids decode as before,
# and new ids are greater, even if the clock is behind.
#
# The environment variable oldinstall is the installation directory of the old server, with bin/. If oldinstall is not
# set, the old server has the same version as the new one.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Catalogue;
use Snowflake::Node;
use Test::More;

my $conf = <<~'CONF';
	shared_preload_libraries = 'snowflake'
	snowflake.layout = '40/3+10/10'
	snowflake.region = 7
	snowflake.tick = 10
	snowflake.epoch = '2020-05-17 01:00+02'
	snowflake.region = 7
	snowflake.max_lead = 60s
	CONF

my $old = Snowflake::Node->new('old',
	$ENV{oldinstall} ? (install_path => $ENV{oldinstall}) : ());
my $new = Snowflake::Node->new('new');
foreach my $node ($old, $new)
{
	# pg_upgrade requires the same locale and page format of both servers.
	$node->init(extra => [ '--data-checksums', '--locale=C', '--encoding=UTF8' ]);
	$node->append_conf('postgresql.conf', $conf);
}

$old->start;
note 'from ' . $old->safe_psql('postgres', 'SHOW server_version');

# Makes objects that call the extension while pg_upgrade rebuilds the catalogue: generated columns, constraints,
# expression and partial indexes, partitions, views, routines and defaults.
$old->safe_psql('postgres', <<~'SQL');
	CREATE EXTENSION snowflake;
	CREATE TABLE photos (
	  id bigint PRIMARY KEY DEFAULT snowflake.next_id(1023),
	  shard int GENERATED ALWAYS AS (snowflake.shard_of(id)) STORED,
	  n int, CHECK (snowflake.region_of(id) = 7), CHECK (id >= snowflake.min_id('2026-01-01+00')));
	CREATE INDEX ON photos (snowflake.time_of(id));
	CREATE INDEX ON photos (n) WHERE id >= snowflake.min_id('2026-01-01+00');
	CREATE TABLE likes (id bigint DEFAULT snowflake.next_id(1022), n int) PARTITION BY RANGE (id);
	CREATE TABLE likes_now PARTITION OF likes
	  FOR VALUES FROM (snowflake.min_id('2026-01-01+00')) TO (MAXVALUE);
	CREATE TABLE likes_then (id bigint CHECK (id < snowflake.min_id('2026-01-01+00')), n int);
	ALTER TABLE likes ATTACH PARTITION likes_then
	  FOR VALUES FROM (MINVALUE) TO (snowflake.min_id('2026-01-01+00'));
	CREATE TABLE routed (id bigint) PARTITION BY LIST (snowflake.shard_of(id));
	CREATE TABLE routed_5 PARTITION OF routed FOR VALUES IN (5);
	CREATE TABLE spread (id bigint PRIMARY KEY, n int) PARTITION BY HASH (id snowflake.by_shard);
	CREATE TABLE spread_0 PARTITION OF spread FOR VALUES WITH (MODULUS 2, REMAINDER 0);
	CREATE TABLE spread_1 PARTITION OF spread FOR VALUES WITH (MODULUS 2, REMAINDER 1);
	CREATE TABLE beside (id bigint REFERENCES spread) PARTITION BY HASH (id snowflake.by_shard);
	CREATE TABLE beside_0 PARTITION OF beside FOR VALUES WITH (MODULUS 2, REMAINDER 0);
	CREATE TABLE beside_1 PARTITION OF beside FOR VALUES WITH (MODULUS 2, REMAINDER 1);
	CREATE VIEW recent AS
	  SELECT * FROM photos WHERE snowflake.created_within(id, now() - interval '1 day', now());
	CREATE MATERIALIZED VIEW per_shard AS SELECT snowflake.shard_of(id), count(*) FROM photos GROUP BY 1;
	CREATE FUNCTION mint() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT snowflake.next_id(3); END;
	INSERT INTO photos (n) SELECT generate_series(1, 2000);
	INSERT INTO likes (n) SELECT generate_series(1, 2000);
	INSERT INTO spread SELECT snowflake.next_id(g % 1000), g FROM generate_series(1, 2000) g;
	INSERT INTO beside SELECT id FROM spread;
	REFRESH MATERIALIZED VIEW per_shard;
	CREATE DATABASE other;
	SQL
$old->safe_psql('other', 'CREATE EXTENSION snowflake; SELECT snowflake.next_id(1)');
# After observe() with an id that is ten seconds ahead of the clock, new ids must be greater than this id.
$old->safe_psql('postgres',
	"SELECT snowflake.observe(snowflake.min_id(clock_timestamp() + interval '10 s'))");
my $highest = $old->safe_psql('postgres', 'SELECT snowflake.next_id(1023)');
cmp_ok($highest, '>', $old->safe_psql('postgres', "SELECT max(id) FROM $_"), "the last id of the old server is above those of $_")
  foreach 'photos', 'likes';

my @carried = (
	[ 'the mark' => 'SELECT last_value, is_called FROM snowflake.high_water' ],
	[ 'the seal' => 'SELECT last_value, is_called FROM snowflake.seal' ],
	[ 'the seal made here' => 'SELECT last_value, is_called FROM snowflake.seal_local' ],
	[ 'the ids and what they mean' => <<~'SQL' ],
		SELECT md5(string_agg(p::text || snowflake.decode(id)::text, ',' ORDER BY id))
		  FROM (SELECT id, shard, n FROM photos UNION ALL SELECT id, 0, n FROM likes) p
		SQL
	[ 'the partitions by shard' => "SELECT md5(string_agg(tableoid::regclass::text || id, ',' ORDER BY id)) FROM spread" ],
	[ 'the privileges' => "SELECT has_function_privilege('public', 'snowflake.observe(bigint)', 'EXECUTE'),
		has_function_privilege('public', 'snowflake.next_id(int)', 'EXECUTE')" ]);
my @before = map { $old->safe_psql('postgres', $_->[1]) } @carried;
my $mark_of_other = $old->safe_psql('other', 'SELECT last_value FROM snowflake.high_water');
$old->stop;

# The clock of the new server is behind, even while pg_upgrade runs.
$new->clock->set(-10);
{
	local %ENV = (%ENV, $new->clock->environment);
	chdir $new->basedir or die $!;
	command_ok([
		'pg_upgrade', '--no-sync',
		'--old-datadir' => $old->data_dir, '--new-datadir' => $new->data_dir,
		'--old-bindir' => $old->config_data('--bindir'), '--new-bindir' => $new->config_data('--bindir'),
		'--old-port' => $old->port, '--new-port' => $new->port,
		'--socketdir' => $new->host ], 'pg_upgrade');
}
$new->start;
note 'to ' . $new->safe_psql('postgres', 'SHOW server_version');

foreach my $i (0 .. $#carried)
{
	is($new->safe_psql('postgres', $carried[$i][1]), $before[$i], "pg_upgrade transfers $carried[$i][0]");
}
is($new->safe_psql('other', 'SELECT last_value FROM snowflake.high_water'),
	$mark_of_other, 'pg_upgrade transfers the mark of the other database');

$new->safe_psql('postgres', 'CREATE DATABASE fresh');
$new->safe_psql('fresh', 'CREATE EXTENSION snowflake');
is(Snowflake::Catalogue::differences(
		Snowflake::Catalogue::snapshot($new, 'postgres'),
		Snowflake::Catalogue::snapshot($new, 'fresh')),
	'', 'after pg_upgrade the catalogue equals that of a fresh installation');

my @ids = $new->ids(<<~'SQL');
	SELECT snowflake.next_id(g % 1024) FROM generate_series(1, 100) g;
	INSERT INTO photos (n) SELECT generate_series(1, 100) RETURNING id;
	INSERT INTO likes (n) SELECT generate_series(1, 100) RETURNING id;
	SELECT mint();
	SELECT unnest(snowflake.next_ids(0, 100));
	SQL
is(scalar(grep { $_ <= $highest } @ids), 0, 'with the clock behind every new id is above every old one');
is(scalar(@ids), 401, 'each statement on the new server returned its ids');
is($new->safe_psql('postgres', 'SELECT minting, cloned FROM snowflake.health()'), 't|f', 'health() shows that the new server mints and is no clone');
my %seen;
is(scalar(grep { $seen{$_}++ } @ids), 0, 'ids of the new server are unique');
is($new->safe_psql('postgres', 'SELECT count(*) FROM photos WHERE shard = 1023'), 2100, 'the generated column has the right shard in all rows of the new server');
is($new->safe_psql('postgres', <<~'SQL'), '0|2000', 'each row of the partitions by shard is in the partition that the new version searches');
	CREATE FUNCTION found(bigint) RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN count(*) FROM spread WHERE id = $1; END';
	INSERT INTO beside SELECT id FROM spread;
	SELECT count(*) FILTER (WHERE found(id) <> 1
	         OR NOT satisfies_hash_partition('spread'::regclass, 2, right(tableoid::regclass::text, 1)::int, id)), count(*) FROM spread
	SQL
is($new->safe_psql('postgres', <<~'SQL'), 't', 'the indexes agree with the table in the new server');
	SET enable_seqscan = off;
	SELECT (SELECT count(*) FROM photos WHERE snowflake.time_of(id) > '2026-01-01+00') = count(*) FROM photos
	SQL
my $read = "SELECT snowflake.time_of($highest), snowflake.shard_of($highest)";
my $before = $new->safe_psql('postgres', $read);
$new->stop;
$new->append_conf('postgresql.conf', "snowflake.layout = '41/13/10'\nsnowflake.tick = 1\n");
$new->start;
is($new->safe_psql('postgres', $read), $before, 'with other settings ids decode as before');
cmp_ok($new->safe_psql('postgres', 'SELECT snowflake.next_id(1023)'), '>', $ids[-1], 'with other settings new ids are still greater');
$new->stop;
done_testing();
