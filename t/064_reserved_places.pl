# The places, region and shard, whose ids backfill() gave to rows: no call mints in one, whatever becomes of the server's
# region and shards afterwards.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use Snowflake::Node;
use Test::More;

my $node = Snowflake::Node->create('main');
my %reserved = (
	sqlstate => '55000',
	message => 'shard 5 is not owned by this server',
	detail => 'Its ids of this region are kept for the rows that backfill\(\) gave them to: table snowflake.backfills',
	hint => 'Mint for another shard; or set another "snowflake.region" or "snowflake.owned_shards" and restart the server');
my $old = <<~'SQL';
	CREATE TABLE old (id bigint UNIQUE DEFAULT snowflake.next_id(5), made timestamptz);
	INSERT INTO old SELECT NULL, now() - n * interval '1 h' FROM generate_series(1, 500) AS n;
	CREATE INDEX ON old (made) WHERE id IS NULL;
	SQL

$node->start_with('snowflake.region = 3');
$node->create_database('app');
$node->safe_psql('app', $old);
$node->safe_psql('app', "CALL snowflake.backfill('old', 'id', 'made', shard => 5)");
is($node->safe_psql('app', 'SELECT region, shard FROM snowflake.backfills'), '31|5', 'a place is reserved');
is($node->safe_psql('app', 'SELECT snowflake.region_of(snowflake.next_id(5))'), '3', 'in this region the shard goes on');

# The server is given that region.
$node->start_with('snowflake.region = 31');
$node->safe_psql('app', "CREATE TABLE near (id bigint, old_id bigint); CREATE TRIGGER set_id BEFORE INSERT ON near FOR EACH ROW EXECUTE FUNCTION snowflake.set_id('old_id')");
my @calls = (
	'SELECT snowflake.next_id(5)', 'SET snowflake.default_shard = 5; SELECT snowflake.next_id()', 'SELECT snowflake.next_ids(5, 10)',
	'SELECT snowflake.next_id(5, max(id)) FROM old', 'SELECT snowflake.next_ids(5, 10, max(id)) FROM old', 'SELECT snowflake.next_id_near(max(id)) FROM old',
	"SELECT snowflake.next_id_in('[5,5]')", 'INSERT INTO near (old_id) SELECT max(id) FROM old', 'INSERT INTO old (made) VALUES (now())');
$node->refuses($_, \%reserved, "as a session's first call: $_", 'app') foreach @calls;
is($node->safe_psql('app', 'SELECT snowflake.shard_of(snowflake.next_id(6)), snowflake.region_of(snowflake.next_id(4))'), '6|31', 'its neighbours mint');
$node->refuses("SELECT snowflake.next_id(6); $_", \%reserved, "and later: $_", 'app') foreach @calls;
is($node->safe_psql('app', "SELECT DISTINCT snowflake.shard_of(snowflake.next_id_in('[5,7)')) FROM generate_series(1, 20000)"), '6', 'next_id_in() goes by it');
is($node->safe_psql('app', "SELECT refusals > 0 FROM snowflake.refusals WHERE cause = 'not_owned'"), 't', 'the refusals are counted');
is($node->safe_psql('app', 'SELECT count(*), count(DISTINCT id) FROM old'), '500|500', 'nothing was inserted');

# In another database of the server nobody has that place.
$node->create_database('other');
is($node->safe_psql('other', 'SELECT snowflake.shard_of(snowflake.next_id(5))'), '5', 'the place is kept in its database');

# Back again; and places that a dump brings, of this very region, while sessions mint.
$node->start_with('snowflake.region = 3');
is($node->safe_psql('app', 'SELECT snowflake.region_of(snowflake.next_id(5))'), '3', 'in its old region the shard mints again');
my $session = $node->background_psql('app', on_error_stop => 0);
like($session->query('SELECT snowflake.next_id(5)'), qr/^\d+$/, 'a session mints');
my $place = "INSERT INTO snowflake.backfills (region, shard, relation, id_column, table_oid) VALUES (3, 5, 'public.old', 'id', 0)";
$node->safe_psql('app', "BEGIN; $place; ROLLBACK");
like($session->query('SELECT snowflake.next_id(5)'), qr/^\d+$/, 'goes on where it is rolled back');
$node->safe_psql('app', "SET client_min_messages = error; $place");
$session->query('SELECT snowflake.next_id(5)');
like($session->{stderr}, qr/shard 5 is not owned by this server/, 'and no longer when it is committed');
$session->{stderr} = '';
like($session->query('SELECT snowflake.next_id(6)'), qr/^\d+$/, 'in that shard');
$node->refuses('SELECT snowflake.next_id(5)', \%reserved, 'nor does another session', 'app');
$node->safe_psql('app', 'DELETE FROM snowflake.backfills WHERE region = 3');
like($session->query('SELECT snowflake.next_id(5)'), qr/^\d+$/, 'a superuser takes it back');
$session->quit;

# A layout without regions: by its shards.
$node->start_with("snowflake.layout = 'instagram'\nsnowflake.owned_shards = '0-4,6-9'");
$node->create_database('plain');
$node->safe_psql('plain', $old =~ s/next_id\(5\)/next_id(6)/r);
$node->safe_psql('plain', "CALL snowflake.backfill('old', 'id', 'made', shard => 5)");
$node->start_with("snowflake.layout = 'instagram'");
$node->refuses('SELECT snowflake.next_id(5)', \%reserved, 'without regions, when the shard is owned again', 'plain');
is($node->safe_psql('plain', 'SELECT count(DISTINCT snowflake.next_id(n)) FROM unnest(ARRAY[0, 4, 6, 8191]) AS n'), '4', 'all others mint');

done_testing();
