# Tests fence_shard(), take_over() and release_shard(), with which an operator moves a shard without
# snowflake-move-shard. The functions for moves must fail if an operator calls them in the wrong order.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use Snowflake::Fleet;
use Snowflake::Mover;
use Snowflake::Node;
use Test::More;

my $fleet = Snowflake::Fleet->new({ a => [ 0, 1 ], b => [2] });
my $mover = Snowflake::Mover->new($fleet);
my ($north, $south) = map { $fleet->node($_) } 'a', 'b';
sub quote { return Snowflake::Fleet::quote($_[0]); }

# The schema has a view, a function and a generated column, which snowflake-move-shard does not move.
my $own = 'CREATE VIEW shard_1.v AS SELECT name FROM shard_1.users; ALTER TABLE shard_1.users ADD g text GENERATED ALWAYS AS (upper(name)) STORED';
$north->safe_psql('postgres', "$own; INSERT INTO shard_1.users (name) SELECT 'old' FROM generate_series(1, 100); INSERT INTO shard_1.photos (user_id) SELECT id FROM shard_1.users LIMIT 7; CREATE PUBLICATION mine FOR TABLE shard_1.users, shard_1.photos");
$south->safe_psql('postgres', "CALL snowflake.create_shards('template', '[1,1]'); $own");
my %order = (sqlstate => 55000);
$north->refuses('SELECT snowflake_fleet.release_shard(1)', { %order, message => 'shard 1 is not fenced', hint => 'moving' }, 'release_shard() fails if the shard is not fenced');
$north->refuses('SELECT snowflake_fleet.fence_shard(7)', { %order, message => 'schema shard_7 has no tables', hint => 'name of the schema' }, 'no schema');

my $fence = $north->safe_psql('postgres', 'SELECT snowflake_fleet.fence_shard(1)');
$north->refuses("INSERT INTO shard_1.users (name) VALUES ('late')", { sqlstate => 40001, message => 'shard 1 moves', hint => 'retry' }, 'fenced');
$north->refuses('SELECT snowflake_fleet.fence_shard(1)', { %order, message => 'shard 1 is already fenced', hint => 'release_shard\(1\)' }, 'not twice');
my $take = sub { return 'SELECT snowflake_fleet.take_over(' . quote($fence) . ", 'mine')" };
$south->refuses($take->(), { %order, message => 'is not copied completely by subscription mine', detail => 'does not have the table', hint => 'subscription copy the table' }, 'taking over fails without a subscription');
like($mover->run('--shard' => 1, '--to' => 'b')->{output}, qr/shard 1 is fenced for a move to another server, replication of your own/, 'snowflake-move-shard refuses a shard with such a fence');
is($north->safe_psql('postgres', "SELECT snowflake_fleet.fenced('shard_1')"), 't', 'the shard is still fenced after the refused program');
is($north->safe_psql('postgres', 'SELECT snowflake_fleet.release_shard(1)'), 'shard_1', 'release_shard() without a receipt removes the fence');
is($north->safe_psql('postgres', "INSERT INTO shard_1.users (name) VALUES ('between') RETURNING name"), 'between', 'the shard accepts writes after release_shard()');
is($north->safe_psql('postgres', "INSERT INTO shard_1.photos (user_id) SELECT min(id) FROM shard_1.users RETURNING number"), '8', 'sequences continue after release_shard()');
is($mover->leftovers, "a: publication mine\n", 'only the user\'s publication remains after release_shard()');

$south->safe_psql('postgres', 'CREATE SUBSCRIPTION mine CONNECTION ' . quote($fleet->conninfo('a')) . ' PUBLICATION mine');
$south->poll_query_until('postgres', "SELECT count(*) = 2 AND bool_and(srsubstate = 'r') FROM pg_subscription_rel") or die;

# Tests publications that leave out some changes, rows or columns of a table.
foreach my $part (q{SET (publish = 'insert')}, q{SET (publish = 'insert, update, delete')}, 'SET TABLE shard_1.users, shard_1.photos WHERE (id > 0)', 'SET TABLE shard_1.users, shard_1.photos (id, user_id, number)', 'DROP TABLE shard_1.photos')
{
	$north->safe_psql('postgres', "ALTER PUBLICATION mine $part");
	$fence = $north->safe_psql('postgres', 'SELECT snowflake_fleet.fence_shard(1)');
	$south->poll_query_until('postgres', "SELECT snowflake_fleet.has_applied('mine', (" . quote($fence) . "::jsonb ->> 'lsn')::pg_lsn)") or die;
	$south->refuses($take->(), { %order, message => 'table shard_1.\w+ is not copied completely by subscription mine', detail => 'row filter', hint => 'Publish the whole table' }, "taking over fails with this change of the publication: $part");
	$north->safe_psql('postgres', "SELECT snowflake_fleet.release_shard(1); ALTER PUBLICATION mine SET (publish = 'insert, update, delete, truncate'); ALTER PUBLICATION mine SET TABLE shard_1.users, shard_1.photos");
}
# A lock on the target delays logical replication.
my $lock = $south->session;
$lock->query_safe('BEGIN; LOCK TABLE shard_1.users IN SHARE MODE');
$north->safe_psql('postgres', "INSERT INTO shard_1.users (name) VALUES ('last')");
$fence = $north->safe_psql('postgres', 'SELECT snowflake_fleet.fence_shard(1)');
$south->refuses($take->(), { %order, message => 'subscription mine has not applied all transactions that were committed before fence_shard()', detail => 'The shard was fenced at WAL position', hint => 'Wait' }, 'taking over fails while the subscription is behind');
$lock->query_safe('COMMIT');
$lock->quit;
$south->poll_query_until('postgres', "SELECT snowflake_fleet.has_applied('mine', (" . quote($fence) . "::jsonb ->> 'lsn')::pg_lsn)") or die;
my $receipt = $south->safe_psql('postgres', $take->());
$south->refuses($take->(), { %order, message => 'shard 1 has been taken over already', hint => 'release_shard' }, 'not twice');
is($south->safe_psql('postgres', "SELECT count(*), count(g) FROM shard_1.v, LATERAL (SELECT g FROM shard_1.users LIMIT 1) g"), '102|102', 'the target has all rows after taking over');
is($south->safe_psql('postgres', 'INSERT INTO shard_1.photos (user_id) SELECT min(id) FROM shard_1.users RETURNING number'), '9', 'sequences continue on the target');
$fleet->control("SELECT snowflake_fleet.move(1, 'a', 'b')");
$fleet->push_map('a', 'b');
$north->refuses('SELECT snowflake_fleet.release_shard(1, ' . quote($receipt =~ s/"id": "[^"]*"/"id": "another"/r) . ')', { %order, message => 'the receipt is of another fence of shard 1', hint => 'receipt for the fence' }, 'release_shard() refuses the receipt of another fence');
is($north->safe_psql('postgres', 'SELECT snowflake_fleet.release_shard(1, ' . quote($receipt) . ')'), 'shard_1_moved', 'release_shard() with the receipt renames the schema');
$north->refuses('SELECT snowflake_fleet.release_shard(1)', { %order, message => 'shard 1 is not fenced', hint => 'moving' }, 'the renamed schema cannot be released again');
$north->refuses("INSERT INTO shard_1_moved.users (name) VALUES ('late')", { sqlstate => 40001, message => 'shard 1 moves', hint => 'retry' }, 'the renamed schema refuses writes');
is($north->safe_psql('postgres', 'SELECT shard, schema, side, state, other, is_running, wal_status FROM snowflake_fleet.moves'), '1|shard_1_moved|source|kept|replication of your own|f|', 'the view moves shows the renamed schema');

$north->safe_psql('postgres', 'CREATE ROLE nobody LOGIN');
$north->refuses("SET ROLE nobody; SELECT snowflake_fleet.$_", { sqlstate => 42501, message => 'permission denied' }, "denied: $_") foreach 'fence_shard(0)', "take_over('{}', 'x')", 'release_shard(0)', "forget_move(0, 'source')";

done_testing();
