# Tests that a Citus node does not mint ids before "snowflake.region" or "snowflake.owned_shards" is set on the node.
# Citus itself is not needed, because the server only checks whether a library named citus is preloaded. The script
# scripts/citus runs tests with the real Citus.

use strict;
use warnings FATAL => 'all';

use File::Copy qw(copy);
use FindBin;
use lib "$FindBin::RealBin/lib";
use Snowflake::Node;
use Test::More;

my $node = Snowflake::Node->create('main');
my $library = $node->basedir . '/citus.so';
copy($node->config_data('--pkglibdir') . '/auto_explain.so', $library) or die "$library: $!";
copy($library, $node->basedir . '/citus_columnar.so') or die $!;
$node->append_conf('postgresql.conf', "shared_preload_libraries = '" . $node->basedir . "/citus_columnar, snowflake'\n");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');
is($node->safe_psql('postgres', 'SELECT snowflake.shard_of(snowflake.next_id(5))'), '5', 'a server that preloads only citus_columnar mints');
$node->safe_psql('postgres', 'DROP EXTENSION snowflake');
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'snowflake, $library'\n");
$node->restart;
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake; CREATE TABLE t (id bigint DEFAULT snowflake.next_id(5), n int); INSERT INTO t VALUES (1, 0)');
my %refused = (
	sqlstate => '55000',
	message => 'this Citus node would mint the same ids as other nodes',
	detail => 'This node has the default settings: region 0 and all shards',
	hint => 'Set "snowflake.region" or "snowflake.owned_shards" to a different value on each node');
$node->refuses($_, \%refused, "a Citus node with the default settings refuses: $_") foreach
  'SELECT snowflake.next_id(5)', 'SELECT snowflake.next_ids(5, 10)', 'INSERT INTO t (n) VALUES (1)',
  'ALTER TABLE t ADD COLUMN other bigint DEFAULT snowflake.next_id(5)';
is($node->safe_psql('postgres', 'SELECT minting, reason FROM snowflake.health'), 'f|this Citus node has the default region and shards', 'health shows that the Citus node has no region of its own');
is($node->safe_psql('postgres', "SELECT snowflake.shard_of(snowflake.make_id('2026-01-01', 7, 0))"), '7', 'a Citus node with the default settings decodes');
$node->append_conf('postgresql.conf', "snowflake.region = 1\n");
$node->restart;
is($node->safe_psql('postgres', 'INSERT INTO t (n) VALUES (1) RETURNING snowflake.region_of(id)'), '1', 'a Citus node with a region of its own mints');
$node->append_conf('postgresql.conf', "snowflake.region = 0\nsnowflake.owned_shards = '0-9'\n");
$node->restart;
is($node->safe_psql('postgres', 'INSERT INTO t (n) VALUES (1) RETURNING snowflake.shard_of(id)'), '5', 'a Citus node with shards of its own mints');

done_testing();
