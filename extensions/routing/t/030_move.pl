# Moving a shard while it is written to: nothing lost, nothing twice, everything where its id says.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Fleet;
use Snowflake::Mover;
use Snowflake::Node;
use Test::More;

my $fleet = Snowflake::Fleet->new({ a => [ 0 .. 7 ], b => [ 8 .. 15 ] }, routers => ['c']);
my $mover = Snowflake::Mover->new($fleet);
my ($north, $south) = map { $fleet->node($_) } 'a', 'b';
$fleet->control("SELECT snowflake_fleet.set_server('c', " . Snowflake::Fleet::quote($fleet->conninfo('c')) . ')');
$fleet->push_map('a', 'b', 'c');

# A shard with rows, and writers that follow the map: they insert, update and delete, retry what is
# refused, and remember what was committed.
$north->safe_psql('postgres', 'INSERT INTO shard_5.users (name) SELECT \'old \' || n FROM generate_series(1, 20000) n');
my %rows = map { split /\|/ } split /\n/, $north->safe_psql('postgres', 'SELECT id, name FROM shard_5.users');
my @writers = map { $mover->start_writer(5, $_) } 1 .. 3;
my $others = $mover->start_writer(6, 9);
sleep 1;
my $moved = $mover->run('--shard' => 5, '--to' => 'b');
is($moved->{status}, 0, 'the shard is moved') or diag($moved->{output});
like($moved->{output}, qr/writers waited [\d.]+ ms, then were refused for [\d.]+ ms/, 'and says how long the pause was');
note $moved->{output};
sleep 1;
$mover->stop_writers;
my %result = map { $_->{number} => $mover->result_of($_) } @writers, $others;
is(join('', map { $_->{errors} } values %result), '', 'the writers met no error that a retry did not cure');
is($result{9}{refused}, 0, 'those of another shard met none at all');
cmp_ok($result{$_}{after}, '>', 10, "writer $_ wrote on the target") foreach 1 .. 3;

%rows = (%rows, %{ $result{$_}{rows} }) foreach 1 .. 3;
my %minted;
$minted{$_}++ foreach map { my $minted = $_->{minted}; map { ($_) x $minted->{$_} } keys %$minted } values %result;
is(join(' ', grep { $minted{$_} > 1 } keys %minted), '', 'no id twice over both servers');
is($mover->differences($south, 5, \%rows), '', 'every row that was committed is there as it was last, none that was not');
is($south->safe_psql('postgres', 'SELECT count(*) FROM shard_5.users WHERE snowflake.shard_of(id) <> 5'), '0', 'in the schema that its id names');
is($south->safe_psql('postgres', 'SELECT count(DISTINCT snowflake.region_of(id)) FROM shard_5.users'), '2', 'minted on both servers');
is($north->safe_psql('postgres', "SELECT to_regnamespace('shard_5') IS NULL"), 't', 'the source has it no more');
foreach my $name ('a', 'b', 'c', 'control')
{
	is($fleet->node($name)->safe_psql('postgres', 'SELECT snowflake_fleet.server_of_shard(5)'), 'b', "the map of $name says so");
}
is($mover->leftovers, '', 'no publication, slot, subscription, trigger or note stays');
is($mover->run('--shard' => 5, '--to' => 'b', '--from' => 'a')->{status}, 0, 'run again, there is nothing to do');

# The move carries keys, sequences, privileges; ids go on above those that moved.
is($south->safe_psql('postgres', "SELECT count(*) FROM pg_constraint WHERE conrelid = 'shard_5.photos'::regclass AND contype IN ('p', 'f')"), '2', 'keys');
$north->safe_psql('postgres', 'INSERT INTO shard_6.photos (user_id, caption) SELECT id, 1 FROM shard_6.users LIMIT 30; GRANT SELECT ON shard_6.photos TO PUBLIC');
my $last = $north->safe_psql('postgres', 'SELECT max(number), max(id) FROM shard_6.photos');
is($mover->run('--shard' => 6, '--to' => 'b')->{status}, 0, 'another one');
my ($number, $id) = split /\|/, $last;
my $next = $south->safe_psql('postgres', 'INSERT INTO shard_6.photos (user_id) SELECT min(id) FROM shard_6.users RETURNING number, id > ' . $id);
is($next, ($number + 1) . '|t', 'the sequence goes on, and so do ids');
is($south->safe_psql('postgres', "SELECT has_table_privilege('public', 'shard_6.photos', 'SELECT')"), 't', 'privileges');

# Refusals, each in a sentence, and nothing begun.
my %refused = (
	'Table shard_1.users has no replica identity' => 'ALTER TABLE shard_1.photos DROP CONSTRAINT photos_user_id_fkey; ALTER TABLE shard_1.users DROP CONSTRAINT users_pkey',
	'Table shard_1.users has no replica identity: give it a primary key that is not deferrable' =>
	  'ALTER TABLE shard_1.photos DROP CONSTRAINT photos_user_id_fkey; ALTER TABLE shard_1.users DROP CONSTRAINT users_pkey, ADD PRIMARY KEY (id) DEFERRABLE',
	'Table shard_1.moods is partitioned by a hash that may be another on the target' =>
	  "CREATE TYPE shard_1.mood AS ENUM ('good'); CREATE TABLE shard_1.moods (id bigint, mood shard_1.mood, PRIMARY KEY (id, mood)) PARTITION BY HASH (mood)",
	'Table shard_1.photos is unlogged' => 'ALTER TABLE shard_1.photos SET UNLOGGED',
	'Foreign key likes_photo_id_fkey of table public.likes refers to the schema from outside' => 'CREATE TABLE likes (photo_id bigint REFERENCES shard_1.photos)',
	'Foreign key photos_user_id_fkey of table shard_1.photos refers to shard_2.users, outside of the schema' =>
	  'ALTER TABLE shard_1.photos DROP CONSTRAINT photos_user_id_fkey; ALTER TABLE shard_1.photos ADD CONSTRAINT photos_user_id_fkey FOREIGN KEY (user_id) REFERENCES shard_2.users',
	'Table shard_1.users has a column of type oid, and this database has large objects' => 'ALTER TABLE shard_1.users ADD picture oid; SELECT lo_create(77)',
	'Prepared transaction later of database postgres is open' => "BEGIN; INSERT INTO shard_1.users (name) VALUES ('prepared'); PREPARE TRANSACTION 'later'",
	'view public.recent is outside of the schema and uses shard_1.users' => 'CREATE VIEW recent AS SELECT * FROM shard_1.users',
	'Materialized view shard_1.m is not moved' => 'CREATE MATERIALIZED VIEW shard_1.m AS SELECT 1',
	'Foreign table shard_1.f is not moved' => 'CREATE FOREIGN TABLE shard_1.f () SERVER none',
	'Table shard_1.users takes part in the partitioning or inheritance of a table outside of the schema' =>
	  'CREATE TABLE heir () INHERITS (shard_1.users)',
	'Table shard_1.users is filled by subscription filled' => 'CREATE SUBSCRIPTION filled CONNECTION \'dbname=none\' PUBLICATION none WITH (connect = false); '
	  . "INSERT INTO pg_subscription_rel SELECT oid, 'shard_1.users'::regclass, 'r' FROM pg_subscription",
	'Schema shard_1 has no tables' => 'DROP TABLE shard_1.users, shard_1.photos',
	'There is no schema shard_1' => 'DROP SCHEMA shard_1 CASCADE');
$north->safe_psql('postgres', 'CREATE FOREIGN DATA WRAPPER none; CREATE SERVER none FOREIGN DATA WRAPPER none');
foreach my $sentence (sort keys %refused)
{
	$north->safe_psql('postgres', $refused{$sentence});
	my $run = $mover->run('--shard' => 1, '--to' => 'b');
	is($run->{status}, 1, "refused: $sentence");
	like($run->{output}, qr/shard 1 cannot be moved\n(?:  .*\n)*?  .*\Q$sentence\E.*\.$/m, '... in a sentence');
	if ($sentence =~ /subscription/)
	{
		$north->safe_psql('postgres', 'DELETE FROM pg_subscription_rel; ALTER SUBSCRIPTION filled SET (slot_name = NONE); DROP SUBSCRIPTION filled');
	}
	is($mover->leftovers, '', '... and nothing is begun');
	$north->safe_psql('postgres', "ROLLBACK PREPARED 'later'") if $sentence =~ /Prepared/;
	$north->safe_psql('postgres', "DROP SCHEMA IF EXISTS shard_1 CASCADE; CALL snowflake.create_shards('template', '[1,1]'); DROP TABLE IF EXISTS likes; SELECT lo_unlink(oid) FROM pg_largeobject_metadata");
}
$south->safe_psql('postgres', "CALL snowflake.create_shards('template', '[1,1]'); INSERT INTO shard_1.users (name) VALUES ('x')");
like($mover->run('--shard' => 1, '--to' => 'b')->{output}, qr/The target has rows in table shard_1.users/, 'refused: rows on the target');
$south->safe_psql('postgres', 'TRUNCATE shard_1.users CASCADE; ALTER TABLE shard_1.users ADD more text');
like($mover->run('--shard' => 1, '--to' => 'b')->{output}, qr/schema shard_1 that is not as that of the source/, 'refused: other tables on the target');
$south->safe_psql('postgres', 'ALTER TABLE shard_1.users DROP more');
like($mover->run('--shard' => 1, '--to' => 'b', '--check')->{output}, qr/can be moved/, 'checked: an empty schema that is the same is taken') ;
# The servers' settings: both are changed and restarted, for each of them.
$north->append_conf('postgresql.conf', 'wal_level = replica');
$north->restart;
like($mover->run('--shard' => 1, '--to' => 'b')->{output}, qr/The source has wal_level = replica, and it takes logical\./, 'refused: wal_level');
$north->append_conf('postgresql.conf', 'wal_level = logical');
$north->restart;
$south->append_conf('postgresql.conf', 'snowflake.region = 2');
$south->restart;
like($mover->run('--shard' => 1, '--to' => 'b')->{output}, qr/Both servers mint ids of shard 1 in region 2/, 'refused: one region on both servers');
$south->append_conf('postgresql.conf', 'snowflake.region = 3');
$south->restart;
is($mover->run('--shard' => 1, '--to' => 'b')->{status}, 0, 'moved into the schema that was there');
is($mover->run('--shard' => 1)->{status}, 2, 'without a target');
my $other = Snowflake::Node->create('other', conf => "snowflake.layout = 'instagram'\n");
$other->start;
$other->safe_psql('postgres', 'CREATE EXTENSION snowflake');
my @to_other = ('--shard' => 2, '--from' => $fleet->conninfo('a'), '--to' => 'host=' . $other->host . ' port=' . $other->port . ' dbname=postgres');
like($mover->run_without_map(@to_other)->{output}, qr/target: extensions snowflake and snowflake_routing have to be installed/, 'refused: a target without extensions');
$other->safe_psql('postgres', 'CREATE EXTENSION snowflake_routing CASCADE');
like($mover->run_without_map(@to_other)->{output}, qr/The layouts differ: the source has .*fleet|41.*, the target .*\./, 'refused: another layout');
$other->stop;
$north->safe_psql('postgres', 'CREATE ROLE mover LOGIN');
like($mover->run_without_map('--shard' => 2, '--from' => $fleet->conninfo('a') . ' user=mover', '--to' => $fleet->conninfo('b'))->{output},
	qr/source: the role is no superuser/, 'refused: no superuser');
like($mover->run_without_map('--shard' => 2, '--from' => $fleet->conninfo('a'), '--to' => $fleet->conninfo('a'))->{output},
	qr/source and target are one database/, 'refused: to itself');

# Back again; what is kept on the source is fenced; and without a map
is($mover->run('--shard' => 1, '--to' => 'a')->{status}, 0, 'moved back');
$south->refuses("INSERT INTO shard_1_moved.users (name) VALUES ('late')",
	{ sqlstate => 40001, message => 'shard 1 moves to another server', detail => 'shard_1_moved.users takes no more changes', hint => 'retry' }, 'kept on the source, it is fenced');
my $alone = $mover->run_without_map('--shard' => 1, '--from' => $fleet->conninfo('a'), '--to' => $fleet->conninfo('b'));
is($alone->{status}, 0, 'without a map') or diag($alone->{output});
is($south->safe_psql('postgres', 'SELECT count(*) FROM shard_1.users'), '0', '... it is on the target');

# Rows that move may have ids that the target's clock has not reached: it mints above them, or does not take over.
my $ahead = $north->safe_psql('postgres', "INSERT INTO shard_7.users VALUES (snowflake.make_id(clock_timestamp() + interval '55 s', 7, 0, 2), 'ahead') RETURNING id");
my $run = $mover->run('--shard' => 7, '--to' => 'b');
is($run->{status}, 1, 'refused: an id of a clock that is ahead');
like($run->{output}, qr/the target would mint below the ids that move there/, '... in a sentence');
is($north->safe_psql('postgres', "INSERT INTO shard_7.users (name) VALUES ('meanwhile') RETURNING 1"), '1', '... and the source takes writes');
$south->reconfigure('snowflake.max_lead' => "'1min'");
is($mover->run('--shard' => 7, '--to' => 'b')->{status}, 0, 'a target that may be as far ahead takes over');
is($south->safe_psql('postgres', "INSERT INTO shard_7.users (name) VALUES ('after') RETURNING id > $ahead"), 't', '... and mints above');

done_testing();
