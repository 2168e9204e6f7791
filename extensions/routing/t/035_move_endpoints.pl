# Tests moves of shards from or to the control database, and from or to a second database of a server. Tests several
# moves at once, and a second target for the same shard.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use Snowflake::Fleet;
use Snowflake::Mover;
use Snowflake::Node;
use Test::More;

my $fleet = Snowflake::Fleet->new({ a => [ 0 .. 9 ], b => [10], c => [11] });
my $mover = Snowflake::Mover->new($fleet);
my ($north, $south, $east, $control) = map { $fleet->node($_) } 'a', 'b', 'c', 'control';
$north->safe_psql('postgres', "INSERT INTO shard_$_.users (name) SELECT 'old ' || n FROM generate_series(1, 5000) n") foreach 0 .. 9;

# The source or target of a move can be the control database.
my $all_in_one = $fleet->conninfo('control');
$fleet->control("SELECT snowflake_fleet.set_server('own', " . Snowflake::Fleet::quote($all_in_one) . ')');
is($mover->run('--shard' => 0, '--to' => 'own')->{status}, 0, 'a move to the control database succeeds');
is($control->safe_psql('postgres', "SELECT count(*), snowflake_fleet.server_of_shard(0) FROM shard_0.users"), '5000|own', 'the control database has the rows and the map');
is($mover->run('--shard' => 0, '--to' => 'b')->{status}, 0, 'a move from the control database succeeds');
is($south->safe_psql('postgres', "SELECT count(*), snowflake_fleet.server_of_shard(0) FROM shard_0.users"), '5000|b', 'the target has the rows and the map');
is($control->safe_psql('postgres', "SELECT to_regnamespace('shard_0') IS NULL"), 't', 'the control database no longer has the schema');

# Tests moves from and to a second database of a server.
$north->safe_psql('postgres', 'CREATE DATABASE second');
$north->safe_psql('second', "CREATE EXTENSION snowflake_shards CASCADE; CREATE EXTENSION snowflake_routing CASCADE; CREATE SCHEMA shard_1; CREATE TABLE shard_1.users (id bigint PRIMARY KEY DEFAULT snowflake.next_id(1), name text); INSERT INTO shard_1.users (name) SELECT 'second' FROM generate_series(1, 300)");
my $second = $fleet->conninfo('a') =~ s/dbname=postgres/dbname=second/r;
$south->safe_psql('postgres', 'CREATE DATABASE second');
$south->safe_psql('second', 'CREATE EXTENSION snowflake_shards CASCADE; CREATE EXTENSION snowflake_routing CASCADE');
my $second_south = $fleet->conninfo('b') =~ s/dbname=postgres/dbname=second/r;
is($mover->run('--shard' => 1, '--to' => 'b', '--until' => 'copied')->{status}, 0, 'the shard of the first database is copied');
my $other = $mover->run_without_map('--shard' => 1, '--from' => $second, '--to' => $second_south);
is($other->{status}, 0, 'the same shard number of the second database is moved meanwhile') or diag($other->{output});
is($mover->run('--shard' => 1, '--to' => 'b')->{status}, 0, 'the move of the first database continues');
is($south->safe_psql('postgres', 'SELECT count(*) FROM shard_1.users') . ' ' . $south->safe_psql('second', 'SELECT count(*) FROM shard_1.users'), '5000 300', 'each target has its own rows');
$south->safe_psql('second', "CREATE SCHEMA shard_9; CREATE TABLE shard_9.users (id bigint PRIMARY KEY, name text); INSERT INTO shard_9.users SELECT n, 'x' FROM generate_series(1, 100) n");
is($mover->run_without_map('--shard' => 9, '--from' => $second_south, '--to' => $fleet->conninfo('c'))->{status}, 0, 'a move from a second database to another server succeeds');
my $within = $mover->run_without_map('--shard' => 9, '--from' => $fleet->conninfo('c'), '--to' => $fleet->conninfo('c') =~ s/dbname=postgres/dbname=second/r);
like($within->{output}, qr/database "second" does not exist/, 'a target database that does not exist is an error');
$east->safe_psql('postgres', 'CREATE DATABASE second');
$east->safe_psql('second', 'CREATE EXTENSION snowflake_shards CASCADE; CREATE EXTENSION snowflake_routing CASCADE');
$within = $mover->run_without_map('--shard' => 9, '--from' => $fleet->conninfo('c'), '--to' => $fleet->conninfo('c') =~ s/dbname=postgres/dbname=second/r);
like($within->{output}, qr/Both servers mint ids of shard 9 in region/, 'a move within one server is refused, because both databases mint in the same region');

{
	local %ENV = (%ENV, PGHOST => $north->host, PGPORT => $north->port, PGDATABASE => 'second');
	$north->safe_psql('second', 'CREATE SCHEMA shard_8; CREATE TABLE shard_8.users (id bigint PRIMARY KEY)');
	is($mover->run_without_map('--shard' => 8, '--from' => 'application_name=x', '--to' => $second_south)->{status}, 0, 'environment variables apply to the source, also in the connection string of the target');
}

# A shard that is being moved to one target cannot be moved to another target.
is($mover->run('--shard' => 2, '--to' => 'b', '--until' => 'copied')->{status}, 0, 'the first move has copied its rows');
my $elsewhere = $mover->run('--shard' => 2, '--to' => 'c', '--check');
is($elsewhere->{status}, 1, '--check refuses another target while a move is open');
like($elsewhere->{output}, qr/A move of shard 2 to another server, b, has not ended\. Finish that move, or run it with --abort\. If that server is permanently lost, run --forget source/, 'the message names the move that must end first');
is($mover->run('--shard' => 2, '--to' => 'c')->{status}, 1, 'the program does not move a shard that is on its way to another server');
is($mover->run('--shard' => 2, '--to' => 'c', '--abort')->{status}, 1, 'another target cannot abort the move');
is($mover->run('--shard' => 2, '--to' => 'b')->{status}, 0, 'the first move continues');

my $locker = $control->session;
$locker->query_safe("SELECT pg_advisory_lock(hashtext('snowflake-move-shard'), 3)");
is($mover->run('--shard' => 3, '--to' => 'b')->{status}, 0, 'a move does not wait for an advisory lock of another role');
$locker->quit;

# Runs five moves at once, with the default number of workers for subscriptions.
$south->safe_psql('postgres', 'ALTER SYSTEM SET max_logical_replication_workers = 4; ALTER SYSTEM SET max_sync_workers_per_subscription = 2');
$south->restart;
my @moves = map { $mover->start('--shard' => $_, '--to' => 'b') } 4 .. 8;
my @ends = map { $mover->finish($_) } @moves;
is(join(' ', map { $_->{status} } @ends), '0 0 0 0 0', 'five moves to one server at once') or diag(map { $_->{output} } @ends);
like(join('', map { $_->{output} } @ends), qr/the target has 4 workers for subscriptions, and 3 are used \(snowflake_move_/, 'if no worker is free, the program waits and names the subscriptions that use the workers');
is($south->safe_psql('postgres', join ' UNION ALL ', map { "SELECT count(*) FROM shard_$_.users" } 4 .. 8), join("\n", (5000) x 5), 'each shard has its rows after concurrent moves');
is($mover->leftovers, '', 'nothing is left over');

# An unfinished move still occupies a worker for logical replication. If another move waits for a free worker, the
# program must print which unfinished move uses the worker.
$south->safe_psql('postgres', 'ALTER SYSTEM SET max_logical_replication_workers = 2');
$south->restart;
$mover->run('--shard' => 9, '--to' => 'b', '--until' => 'copied')->{status} == 0 or die;
$north->safe_psql('postgres', "CALL snowflake.create_shards('template', '[12,12]')");
$fleet->control("SELECT snowflake_fleet.assign('[12,12]', 'a')");
my $waits = $mover->start('--shard' => 12, '--to' => 'b');
$mover->wait_for($waits, qr/the target has 2 workers for subscriptions, and 1 are used \(snowflake_move_9\): waiting until one ends/);
is($south->safe_psql('postgres', 'SELECT shard, schema, side, state, other, is_running, wal_status FROM snowflake_fleet.moves'), '9|shard_9|target|arriving|a|f|', 'the move that rests is shown');
$south->safe_psql('postgres', 'ALTER SUBSCRIPTION snowflake_move_9 DISABLE');
$north->poll_query_until('postgres', "SELECT bool_and(NOT active) FROM pg_replication_slots WHERE slot_name ~ '_9\$'") or die;
$north->reconfigure(max_slot_wal_keep_size => "'1MB'");
$north->safe_psql('postgres', "CREATE TABLE filler AS SELECT repeat('x', 1000) FROM generate_series(1, 100); SELECT pg_switch_wal()") , $north->safe_psql('postgres', 'DROP TABLE filler; SELECT pg_switch_wal(); CHECKPOINT') foreach 1 .. 2;
$north->poll_query_until('postgres', "SELECT wal_status = 'lost' FROM pg_replication_slots WHERE slot_name ~ '_9\$'") or die;
is($north->safe_psql('postgres', "SELECT shard, state, other, is_running, wal_status FROM snowflake_fleet.moves WHERE state <> 'kept'"), '9|copying|b|f|lost', 'the view moves shows the lost slot');
$north->reconfigure(max_slot_wal_keep_size => -1);
$south->safe_psql('postgres', 'ALTER SUBSCRIPTION snowflake_move_9 ENABLE');
# A move whose replication slot was dropped still occupies a worker on the target.
my $ended = $mover->run('--shard' => 9, '--to' => 'b', '--until' => 'copied');
is($ended->{status}, 0, 'the copy is made again') or diag($ended->{output});
like($ended->{output}, qr/the replication slot does not exist any more, .*: the copy starts again/, 'if the slot is lost, the copy starts again');
is($mover->run('--shard' => 9, '--to' => 'b', '--abort')->{status}, 0, '--abort ends the move whose slot was lost');
is($mover->finish($waits)->{status}, 0, 'the waiting move succeeds');

# snowflake-move-shard checks limits of the servers before a move begins, because CREATE SUBSCRIPTION would fail only
# later. From PostgreSQL 18 on, max_active_replication_origins limits the replication origins.
my $origins = $south->safe_psql('postgres',
	"SELECT min(name) FROM pg_settings WHERE name IN ('max_replication_slots', 'max_active_replication_origins')");
foreach my $case ([ $south, 'max_logical_replication_workers', 1, 'The target has 1 free workers for subscriptions' ],
	[ $north, 'max_replication_slots', 1, 'The source has 1 free replication slots and ' ],
	[ $north, 'max_wal_senders', 1, ' and 1 free WAL senders' ],
	[ $south, 'max_sync_workers_per_subscription', 0, ' max_sync_workers_per_subscription is 0.' ],
	[ $south, $origins, 1, ' and 1 free replication origins' ])
{
	my ($node, $setting, $value, $sentence) = @$case;
	$node->safe_psql('postgres', "ALTER SYSTEM SET $setting = $value");
	$node->restart;
	my $check = $mover->run('--shard' => 9, '--to' => 'b', '--check');
	is($check->{status}, 1, "refused: $setting");
	like($check->{output}, qr/\Q$sentence\E/, "$setting: the message has the number that is left");
	$node->safe_psql('postgres', "ALTER SYSTEM RESET $setting");
	$node->restart;
}
like($mover->run('--shard' => 9, '--to' => 'b', '--check', '--source-for-target' => 'host=/nowhere dbname=x')->{output}, qr/the target could not be prepared, and nothing was changed: .*could not connect to the publisher(?s:.*)use --source-for-target/, 'refused: a target that cannot connect to the source');
like($mover->run('--shard' => 9, '--to' => 'b', '--check')->{output}, qr/shard 9 can be moved/, 'without such an object the shard can be moved');

done_testing();
