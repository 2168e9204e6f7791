# Tests that backfill() and late_id() use ids of an origin (a region and a shard) in which the server has minted no ids.
# The function next_id() must not mint ids that backfill() and late_id() have used, even if the server's settings
# change.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use Snowflake::Node;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = Snowflake::Node->create('main');
my $old = <<~'SQL';
	CREATE TABLE old (id bigint UNIQUE DEFAULT snowflake.next_id(5), made timestamptz);
	INSERT INTO old SELECT NULL, now() - n * interval '1 h' FROM generate_series(0, 500) AS n;
	CREATE INDEX ON old (made) WHERE id IS NULL;
	SQL
my $backfill = "CALL snowflake.backfill('old', 'id', 'made', shard => 5)";
# Mints ids, and checks that they have the given region and are greater than all ids of the table.
sub mints_later
{
	my ($region, $database, $name) = @_;
	is($node->safe_psql($database, 'SELECT min(i) > (SELECT max(id) FROM old), snowflake.region_of(min(i)) FROM unnest(snowflake.next_ids(5, 2000)) AS i'),
		"t|$region", $name);
}

$node->start_with('snowflake.region = 3');
$node->create_database('app');
$node->add_tools('app');
$node->clock->set(50);
$node->safe_psql('app', $old);
$node->safe_psql('app', $backfill);
is($node->safe_psql('app', 'SELECT region, shard, until <= now() FROM snowflake.backfills'), '31|5|t', 'backfill() reserves an origin');
is($node->safe_psql('app', 'SELECT count(id) FROM old'), '501', 'backfill() gives an id to every row');

# Changes the server to the region that backfill() has used. The high-water mark must be later than the ids that
# backfill() has made.
$node->clock->set(20);
$node->start_with("snowflake.region = 31\nsnowflake.max_wait = 0");
$node->refuses('SELECT snowflake.next_id(5)', { sqlstate => '55000', message => 'the clock is behind the high-water mark \(sequence snowflake.high_water\)' },
	'in the region of the origin next_id() fails while the clock is behind', 'app');
$node->clock->set(50);
$node->start_with('snowflake.region = 31');
mints_later(31, 'app', 'in the region of the origin the server mints greater ids');
my $minted = $node->safe_psql('app', 'INSERT INTO old VALUES (DEFAULT, NULL) RETURNING id');

# Changes the server back to its first region. The procedure backfill() must detect that the server has minted ids in
# the region that backfill() uses.
$node->start_with('snowflake.region = 3');
$node->safe_psql('app', 'INSERT INTO old SELECT NULL, now()');
$node->refuses($backfill, { sqlstate => '55000', message => 'ids of region 31, shard 5 already exist', detail => 'Column public\.old\.id already contains an id of this region and shard, of .* or later' },
	'backfill() fails if ids were minted in its origin', 'app');
$node->safe_psql('app', 'CREATE TABLE another AS SELECT NULL::bigint AS id, made FROM old; ALTER TABLE another ALTER id SET DEFAULT snowflake.next_id(5); CREATE INDEX ON another (made)');
$node->safe_psql('app', "CALL snowflake.backfill('another', 'id', 'made', shard => 5)");
is($node->safe_psql('app', 'SELECT DISTINCT snowflake.region_of(id) FROM another WHERE id IS NOT NULL'), '30', 'another table gets another origin');

# DROP EXTENSION removes the record of regions and shards that backfill() has used.
$node->safe_psql('app', 'DROP EXTENSION snowflake CASCADE; CREATE EXTENSION snowflake_migrate CASCADE; ALTER TABLE old ALTER id SET DEFAULT snowflake.next_id(5); ALTER TABLE another ALTER id SET DEFAULT snowflake.next_id(5)');
is($node->safe_psql('app', "SELECT snowflake.region_of(snowflake.late_id('2026-01-01', 5))"), '29', 'after the extension was created again, late_id() avoids the regions of existing ids');
is($node->safe_psql('app', 'SELECT count(*) FROM old JOIN another USING (id)'), '0', 'no id is in both tables');

# After a dump and restore, new ids must be above all ids of backfill() and late_id().
$node->start_with('snowflake.region = 29');
$node->safe_psql('postgres', 'CREATE DATABASE copy');
my $dump = PostgreSQL::Test::Utils::tempdir() . '/app.dump';
$node->command_ok([ 'pg_dump', '-Fc', '-f', $dump, $node->connstr('app') ], 'pg_dump');
$node->command_ok([ 'pg_restore', '--exit-on-error', '-d', $node->connstr('copy'), $dump ], 'pg_restore');
is($node->safe_psql('copy', 'SELECT region, relation FROM snowflake.backfills'), '29|', 'the copy has the origin of the late ids');
is($node->safe_psql('copy', 'SELECT snowflake.next_id(5) > max(id) FROM snowflake.late_ids'), 't', 'the copy mints ids above the late ids of its region');
is($node->safe_psql('copy', "SELECT snowflake.region_of(i), i = max(id) OVER () FROM snowflake.late_ids, (SELECT snowflake.late_id('2026-01-01', 5)) AS t (i)"),
	'29|f', 'late_id() of the copy returns an id before the last late id');
$node->refuses('SELECT snowflake.late_id(now(), 5)', { sqlstate => '55000', message => 'this server mints in region 29' }, 'late_id() of the copy refuses a later time', 'copy');

# In a layout without regions backfill() uses a shard that the server does not own. When backfill() has finished, the
# server may own the shard that backfill() has used.
$node->start_with("snowflake.layout = 'instagram'\nsnowflake.owned_shards = '0-4,6-9'");
$node->create_database('plain');
$node->add_tools('plain');
$node->safe_psql('plain', $old =~ s/next_id\(5\)/next_id(6)/r);
$node->safe_psql('plain', $backfill);
my $late = $node->safe_psql('plain', "SELECT snowflake.late_id('2026-01-01', 10)");
$node->start_with("snowflake.layout = 'instagram'");
mints_later(0, 'plain', 'without regions: when the shard is owned again, new ids are above those of backfill()');
is($node->safe_psql('plain', "SELECT snowflake.next_id(10) > $late"), 't', 'without regions: when the shard is owned again, new ids are above the late ids');
$node->refuses("SELECT snowflake.late_id('2026-01-01', 10)", { sqlstate => '55000', message => 'this server can mint new ids for shard 10' }, 'without regions: late_id() refuses a shard that the server owns', 'plain');

done_testing();
