# Tests partitioned tables of which each partition is a foreign table (postgres_fdw) for one shard. A statement for one
# id must be sent to one server.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use IPC::Run;
use Snowflake::Fleet;
use Snowflake::Ledger;
use Snowflake::Node;
use Test::More;

my $fleet = Snowflake::Fleet->new({ a => [ 0 .. 5 ], b => [ 6 .. 10 ], c => [ 11 .. 15 ] }, routers => ['router']);
my $router = $fleet->node('router');
my %home = map { my $name = $_; map { $_ => $name } @{ $fleet->{shards}{$name} } } @{ $fleet->{names} };

$router->safe_psql('postgres', 'CREATE TABLE users (id bigint NOT NULL DEFAULT snowflake.next_id(0), name text) PARTITION BY HASH (id snowflake.by_shard)');
$router->refuses("CALL snowflake_fleet.use_postgres_fdw('users')", { sqlstate => 55000, message => '"postgres_fdw" is not installed', hint => 'CREATE EXTENSION' }, 'use_postgres_fdw() fails without postgres_fdw');
$router->safe_psql('postgres', <<~'SQL');
	CREATE EXTENSION postgres_fdw;
	CREATE TABLE plain (id bigint);
	CREATE TABLE by_hash (id bigint) PARTITION BY HASH (id);
	CREATE TABLE with_key (id bigint PRIMARY KEY) PARTITION BY HASH (id snowflake.by_shard);
	CREATE TABLE local (id bigint) PARTITION BY HASH (id snowflake.by_shard);
	CREATE TABLE local_0 PARTITION OF local FOR VALUES WITH (MODULUS 2, REMAINDER 0);
	SQL
$router->refuses("CALL snowflake_fleet.use_postgres_fdw($_->[0])", $_->[1], "use_postgres_fdw() refuses $_->[0]") foreach
  [ "'plain'", { sqlstate => 42809, message => 'plain is not partitioned by shard', hint => 'by_shard' } ],
  [ "'by_hash'", { sqlstate => 42809, message => 'by_hash is not partitioned by shard' } ],
  [ 'NULL', { sqlstate => 42809, message => 'null is not partitioned by shard' } ],
  [ "'with_key'", { sqlstate => 42809, message => 'with_key has a primary key', detail => 'does not support keys over foreign tables', hint => 'Drop' } ],
  [ "'local'", { sqlstate => 42809, message => 'partition public.local_0 was not created by', detail => 'modulus 2', hint => 'Detach' } ],
  [ "'users', 'public.users'", { sqlstate => 22023, message => '"public.users" is not a format for the names of the shards\' tables', hint => 'shard_%s' } ],
  [ "'users', 'users_%s'", { sqlstate => 22023, message => '"users_%s" is not a format for the names of the shards\' tables' } ];

$router->safe_psql('postgres', 'CREATE ROLE guest; GRANT USAGE ON FOREIGN DATA WRAPPER postgres_fdw TO guest; SET ROLE guest; CREATE SERVER snowflake_shard_3 FOREIGN DATA WRAPPER postgres_fdw');
$router->refuses("CALL snowflake_fleet.use_postgres_fdw('users')", { sqlstate => 42501, message => 'foreign server snowflake_shard_3 belongs to role guest', detail => 'change its connection options', hint => 'OWNER TO' },
	'a foreign server that another role could change');
$router->safe_psql('postgres', 'DROP SERVER snowflake_shard_3; DROP OWNED BY guest; DROP ROLE guest');

sub partitions
{
	return $router->safe_psql('postgres', <<~'SQL');
		SELECT string_agg(concat_ws(' ', pg_get_expr(relpartbound, c.oid), srvname, array_to_string(ftoptions, ',')), E'\n' ORDER BY c.oid::regclass::text COLLATE "C")
		  FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid JOIN pg_foreign_table ON ftrelid = c.oid JOIN pg_foreign_server s ON s.oid = ftserver
		 WHERE inhparent = 'users'::regclass
		SQL
}
$router->safe_psql('postgres', "CALL snowflake_fleet.use_postgres_fdw('users')");
my $made = partitions();
is($made, join("\n", map { "FOR VALUES WITH (modulus 256, remainder $_) snowflake_shard_$_ schema_name=shard_$_,table_name=users" } sort { "$a" cmp "$b" } 0 .. 15),
	'a foreign partition for each shard, on a foreign server of its own');
my $oids = "SELECT md5(string_agg(inhrelid::text, ',' ORDER BY inhrelid)) FROM pg_inherits WHERE inhparent = 'users'::regclass";
my $before = $router->safe_psql('postgres', $oids);
$router->safe_psql('postgres', "CALL snowflake_fleet.use_postgres_fdw('users')");
is($router->safe_psql('postgres', $oids), $before, 'a second use_postgres_fdw() does not change the partitions');

# INSERT and COPY mint ids in the region of the server that executes the statement, not of the server that stores the
# row.
my $region = $router->safe_psql('postgres', 'SHOW snowflake.region');
my @writers = map {
	$router->start_writer(join '', map { "INSERT INTO users (id, name) VALUES (snowflake.next_id($_), 'user $_') RETURNING id;\n" } (0 .. 15) x 25)
} 1 .. 3;
push @writers, map { $fleet->node($home{$_})->start_writer("INSERT INTO shard_$_.users (name) SELECT 'user $_' FROM generate_series(1, 200) RETURNING id;\n") } 3, 12;
my $ledger = Snowflake::Ledger->new(shard_bits => 8);
my %own;
foreach my $writer (@writers)
{
	my $result = $router->finish_writer($writer);
	ok($result->{well}, 'a client of the router has no error') or diag($result->{errors});
	$own{ $_ >> 18 & 31 }++ foreach @{ $result->{ids} };
	$ledger->record($ledger->anonymous . ($writer->{name} =~ s/.writer.*//r), @{ $result->{ids} }) if $writer->{name} =~ /router/;
	$ledger->{holder}{$_}++ ? fail("$_ twice") : 1 foreach $writer->{name} =~ /router/ ? () : @{ $result->{ids} };
}
is($own{$region}, 1200, '1200 ids have the region of the router');
is(scalar(keys %{ $ledger->{holder} }), 1600, 'ids of all servers are unique');
$router->safe_psql('postgres', "COPY users (name) FROM PROGRAM 'yes copied | head -n 100'");
is($fleet->node('a')->safe_psql('postgres', "SELECT count(*), count(*) FILTER (WHERE snowflake.region_of(id) = $region) FROM shard_0.users WHERE name = 'copied'"),
	'100|100', 'COPY stores rows on the server of their shard');
is($router->safe_psql('postgres', 'SELECT count(*), count(DISTINCT id), bool_and(tableoid::regclass::text = \'users_shard_\' || snowflake.shard_of(id)) FROM users'),
	'1700|1700|t', 'every row is in the foreign table of its shard');

# Checks by EXPLAIN and by the open connections that a statement for one id is sent to one server.
my $id = $fleet->node('b')->safe_psql('postgres', 'SELECT max(id) FROM shard_9.users');
like($router->safe_psql('postgres', "EXPLAIN (VERBOSE, COSTS OFF) SELECT * FROM users WHERE id = $id"),
	qr/\AForeign Scan on public.users_shard_9 users\n(?!.*Foreign Scan).*Remote SQL: SELECT id, name FROM shard_9.users WHERE \(\(id = $id/s, 'the plan of SELECT by id has one foreign scan');
like($router->safe_psql('postgres', "SET plan_cache_mode = force_generic_plan; PREPARE p(bigint) AS SELECT * FROM users WHERE id = \$1; EXPLAIN (VERBOSE, COSTS OFF) EXECUTE p($id)"),
	qr/Subplans Removed: 15\n.*Remote SQL: SELECT id, name FROM shard_9.users/s, 'a generic plan of SELECT by id removes the other partitions');
like($router->safe_psql('postgres', "EXPLAIN (VERBOSE, COSTS OFF) UPDATE users SET name = 'x' WHERE id = $id"),
	qr/Foreign Update on public.users_shard_9.*Remote SQL: UPDATE shard_9.users SET name = 'x'::text WHERE \(\(id = $id/s, 'the plan of UPDATE by id has one foreign update');
like($router->safe_psql('postgres', "EXPLAIN (VERBOSE, COSTS OFF) DELETE FROM users WHERE id = $id"),
	qr/Foreign Delete on public.users_shard_9.*Remote SQL: DELETE FROM shard_9.users WHERE \(\(id = $id/s, 'the plan of DELETE by id has one foreign delete');

# Runs a statement in a new session, and returns the servers to which the session has connected.
sub asked
{
	my ($sql) = @_;
	my $marker = 'asked_' . ++$fleet->{asked};
	my %since = map { $_ => -s $fleet->node($_)->logfile } 'a', 'b', 'c';
	my $result = $router->safe_psql('postgres', $sql);
	my @asked = grep {
		my $log = PostgreSQL::Test::Utils::slurp_file($fleet->node($_)->logfile, $since{$_});
		$log =~ /connection authorized:.*application_name=postgres_fdw/
	} 'a', 'b', 'c';
	return "$result by @asked";
}
$_->reconfigure(log_connections => 'on') foreach $fleet->nodes;
is(asked("SELECT name FROM users WHERE id = $id"), 'user 9 by b', 'SELECT by id is sent to one server');
is(asked("UPDATE users SET name = 'changed' WHERE id = $id RETURNING name"), 'changed by b', 'UPDATE by id is sent to one server');
is(asked("SELECT name FROM users WHERE id IN ($id, (1 << 10))"), 'changed by a b', 'SELECT of two ids is sent to two servers');
is(asked("DELETE FROM users WHERE id = $id RETURNING name"), 'changed by b', 'DELETE by id is sent to one server');
is(asked("SELECT count(*) FROM users WHERE id = $id"), '0 by b', 'the deleted row does not exist on the server');
is(asked('SELECT count(*) FROM users'), '1699 by a b c', 'SELECT of all rows is sent to all servers');
is(asked("INSERT INTO users (id, name) VALUES (snowflake.next_id(9), 'new') RETURNING name"), 'new by b', 'INSERT is sent to the server of the shard');

$router->refuses('INSERT INTO users (id) VALUES (snowflake.next_id(16))', { sqlstate => 23514, message => 'no partition of relation "users" found' }, 'INSERT of a shard outside the map fails');

# Tests changes of the shard map. The function import_map() must not wait for a session that has locked all partitions.
my $push = sub {
	my ($out, $err) = ('', '');
	my $run = IPC::Run::start([ "$FindBin::RealBin/../bin/snowflake-push-map", '--timeout', 60, $fleet->conninfo('control'), $fleet->conninfo('router') ],
		'<', \undef, '>', \$out, '2>', \$err, IPC::Run::timeout(120));
	$run->finish;
	return ($run->full_result >> 8) . $err;
};
sub moved { return $fleet->node('b')->safe_psql('postgres', "CALL snowflake.create_shards('template', '[$_[0],$_[0]]'); INSERT INTO shard_$_[0].users (id, name) VALUES ($_[1], 'moved')"); }
my $third = $fleet->node('a')->safe_psql('postgres', 'SELECT max(id) FROM shard_3.users');
my $sixth = $fleet->node('b')->safe_psql('postgres', 'SELECT max(id) FROM shard_6.users');
my ($session, $prepared, $reader) = map { $router->session } 1 .. 3;
is($session->query_safe("SELECT name FROM users WHERE id = $third"), 'user 3', 'before the move an open session reads the row on a');
$prepared->query_safe('SET plan_cache_mode = force_generic_plan; PREPARE p(bigint) AS SELECT name FROM users WHERE id = $1');
is($prepared->query_safe("EXECUTE p($third)"), 'user 3', 'before the move a prepared statement reads the row on a');
$reader->query_safe('BEGIN');
is($reader->query_safe("SELECT name FROM users WHERE id = $third"), 'user 3', 'before the move an open transaction reads the row on a');
$reader->query_safe('SELECT count(*) FROM users');
moved(3, $third);
$fleet->control("SELECT snowflake_fleet.move(3, 'a', 'b')");
is($push->(), '0', 'the router accepts the map although a transaction has locked all partitions');
is($session->query_safe("SELECT name FROM users WHERE id = $third"), 'moved', 'after the move an open session reads the row on b');
$reader->query_safe('COMMIT');
is($reader->query_safe("SELECT name FROM users WHERE id = $third"), 'moved', 'after the move the next transaction of the other session reads the row on b');
is($prepared->query_safe("EXECUTE p($third)"), 'moved', 'after the move a prepared statement reads the row on b');
is($session->query_safe("UPDATE users SET name = 'written' WHERE id = $third RETURNING name"), 'written', 'after the move an open session updates the row');
is($fleet->node('b')->safe_psql('postgres', "SELECT name FROM shard_3.users WHERE id = $third"), 'written', 'after the move the updated row is on b');
is($session->query_safe("SELECT name FROM users WHERE id = $sixth"), 'user 6', 'rows of other shards are still read');
is($router->safe_psql('postgres', $oids), $before, 'the move has not replaced a partition');
is($push->(), '0', 'a second push of the same map succeeds');

$fleet->control("SELECT snowflake_fleet.move(3, 'b', 'a')");
$fleet->push_map('router');
is($session->query_safe("SELECT name FROM users WHERE id = $third"), 'user 3', 'when the shard is moved back, an open session reads the row on a');
$fleet->control("SELECT snowflake_fleet.move(3, 'a', 'b')");
$fleet->push_map('router');

# Changes the connection string and user of server "a", and removes shard 15 from the shard map. A changed shard map
# must not remove the option fetch_size, which the test adds to a foreign server.
$router->safe_psql('postgres', "ALTER SERVER snowflake_shard_0 OPTIONS (ADD fetch_size '500')");
$fleet->node('a')->safe_psql('postgres', 'CREATE ROLE app LOGIN; GRANT USAGE ON SCHEMA shard_1 TO app; GRANT SELECT ON shard_1.users TO app');
my $user = $router->safe_psql('postgres', 'SELECT current_user');
$router->safe_psql('postgres', "ALTER USER MAPPING FOR CURRENT_USER SERVER snowflake_shard_$_ OPTIONS (ADD user '$user')") foreach 0 .. 5;
$fleet->control("DELETE FROM snowflake_fleet.map_shard WHERE shard = 15");
$fleet->control("SELECT snowflake_fleet.set_server('a', " . Snowflake::Fleet::quote($fleet->conninfo('a') . " user=app application_name='another name' connect_timeout=7") . ')');
$fleet->push_map('router');
is($router->safe_psql('postgres', "SELECT array_to_string(srvoptions, ' ') ~ 'application_name=another name', array_to_string(srvoptions, ' ') ~ 'connect_timeout=7', array_to_string(srvoptions, ' ') ~ 'fetch_size=500' FROM pg_foreign_server WHERE srvname = 'snowflake_shard_0'"),
	't|t|t', 'the foreign server has the new options of the map, and keeps options of its own');
is($router->safe_psql('postgres', q{SELECT count(*), count(*) FILTER (WHERE array_to_string(srvoptions, ' ') ~ 'connect_timeout=(10|7).*' AND array_to_string(srvoptions, ' ') ~ 'keepalives_idle=30.*tcp_user_timeout=60000|tcp_user_timeout=60000.*keepalives_idle=30') FROM pg_foreign_server WHERE array_to_string(srvoptions, ' ') !~ 'not in the shard map'}),
	'15|15', 'every foreign server has time limits');
is($session->query_safe('SELECT count(*) > 0 FROM users_shard_1'), 't', 'an open session connects as the new user of the map');
is($fleet->node('a')->safe_psql('postgres', "SELECT count(*) > 0 FROM pg_stat_activity WHERE usename = 'app' AND application_name = 'another name'"), 't', 'server a shows a session of the new user');
my $fifteenth = $fleet->node('c')->safe_psql('postgres', 'SELECT max(id) FROM shard_15.users');
like($router->error_of("SELECT * FROM users WHERE id = $fifteenth"), qr/shard 15 is not in the shard map/, 'a query for a shard that is no longer in the map fails');
$fleet->control("SELECT snowflake_fleet.set_server('a', " . Snowflake::Fleet::quote($fleet->conninfo('a') . " user=$user") . ')');
$fleet->control("SELECT snowflake_fleet.assign('[15,15]', 'c')");
$fleet->push_map('router');
is($session->query_safe("SELECT name FROM users WHERE id = $fifteenth"), 'user 15', 'a query succeeds when the shard is in the map again');

# use_postgres_fdw() must add partitions for new shards to all tables. While use_postgres_fdw() waits for an open
# transaction, other sessions must be able to read the table.
$_->safe_psql('postgres', 'CREATE ROLE someone LOGIN') foreach $router, $fleet->nodes;
$router->safe_psql('postgres', "CREATE USER MAPPING FOR someone SERVER snowflake_shard_$_ OPTIONS (user 'someone', password 'p')") foreach 0 .. 15;
$router->safe_psql('postgres', 'CREATE TABLE photos (id bigint NOT NULL, user_id bigint NOT NULL, number integer, caption text) PARTITION BY HASH (id snowflake.by_shard)');
$router->safe_psql('postgres', "CALL snowflake_fleet.use_postgres_fdw('photos')");
$fleet->node('c')->safe_psql('postgres', "CALL snowflake.create_shards('template', '[16,17]')");
$fleet->control("SELECT snowflake_fleet.assign('[16,17]', 'c')");
$fleet->push_map('router');
$reader->query_safe('BEGIN');
$reader->query_safe("SELECT name FROM users WHERE id = $sixth");
my $call = $router->start_writer('CALL snowflake_fleet.use_postgres_fdw()');
$router->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'writer' AND (wait_event_type = 'Lock' OR wait_event = 'PgSleep')}) or die;
is($router->safe_psql('postgres', "SET statement_timeout = '30s'; SELECT name FROM users WHERE id = $sixth"), 'user 6', 'other sessions read while the call waits for an open transaction');
$reader->query_safe('COMMIT');
my $called = $router->finish_writer($call);
ok($called->{well}, 'the call succeeds when the open transaction has ended') or diag($called->{errors});
is($router->safe_psql('postgres', "SELECT string_agg(inhrelid::regclass::text, ' ' ORDER BY inhrelid::regclass::text) FROM pg_inherits WHERE inhrelid::regclass::text ~ '_1[67]\$'"),
	'photos_shard_16 photos_shard_17 users_shard_16 users_shard_17', 'both tables have partitions for the new shards');
is($router->safe_psql('postgres', "INSERT INTO users (id, name) VALUES (snowflake.next_id(17), 'new') RETURNING name"), 'new', 'rows of a new shard can be inserted');

# postgres_fdw sends NULL for columns that an INSERT does not name, and an identity column refuses NULL.
my $author = $router->safe_psql('postgres', 'SELECT max(id) FROM users_shard_17');
$router->refuses("INSERT INTO photos (id, user_id) VALUES (snowflake.next_id(17), $author)", { sqlstate => 23502, message => 'null value in column "number"' }, 'an INSERT fails if the table of the router has an identity column');
$router->safe_psql('postgres', 'CREATE TABLE unnumbered (id bigint NOT NULL, user_id bigint NOT NULL, caption text) PARTITION BY HASH (id snowflake.by_shard)');
$router->safe_psql('postgres', "CALL snowflake_fleet.use_postgres_fdw('unnumbered', 'shard_%s.photos')");
is($router->safe_psql('postgres', "INSERT INTO unnumbered (id, user_id) VALUES (snowflake.next_id(17), $author) RETURNING 1"), '1', 'an INSERT succeeds if the table of the router lacks the identity column');
is($fleet->node('c')->safe_psql('postgres', 'SELECT count(number) FROM shard_17.photos'), '1', 'the server of the shard has generated the number');
$router->safe_psql('postgres', 'DROP TABLE unnumbered');
is($router->safe_psql('postgres', q{SELECT array_to_string(umoptions, ' ') FROM pg_user_mappings WHERE srvname = 'snowflake_shard_17' AND usename = 'someone'}), 'user=someone password=p',
	'roles that the other servers know, the new ones know');
$before = $router->safe_psql('postgres', $oids);
$router->safe_psql('postgres', 'CALL snowflake_fleet.use_postgres_fdw()');
is($router->safe_psql('postgres', $oids), $before, 'a further use_postgres_fdw() does not change the partitions');
$router->refuses("CALL snowflake_fleet.use_postgres_fdw('users', 'public.users_%s')",
	{ sqlstate => 42809, message => 'partition public.users_shard_0 was not created by', detail => 'table shard_0\.users\. The partition must have .*table public.users_0', hint => 'Detach' }, 'use_postgres_fdw() refuses other remote names for the same table');
$_->quit foreach $session, $prepared, $reader;

# An UPDATE must not change the shard of an id, because postgres_fdw does not move the row to another server.
$router->refuses("UPDATE users SET id = snowflake.next_id(9) WHERE id = $sixth", { sqlstate => 23514, message => 'violates check constraint "shard_of_id"' }, 'an UPDATE to an id of another shard fails');
is($router->safe_psql('postgres', "SELECT name FROM users WHERE id = $sixth"), 'user 6', 'the row has its id after the refused UPDATE');

# Tests servers that store each shard as a table with a number in its name, instead of a schema.
$fleet->node($home{$_})->safe_psql('postgres', "CREATE TABLE public.notes_$_ (id bigint PRIMARY KEY, note text)") foreach 0 .. 15;
$fleet->node('c')->safe_psql('postgres', "CREATE TABLE public.notes_$_ (id bigint PRIMARY KEY, note text)") foreach 16, 17;
$router->safe_psql('postgres', 'CREATE TABLE notes (id bigint NOT NULL, note text) PARTITION BY HASH (id snowflake.by_shard)');
$router->safe_psql('postgres', "CALL snowflake_fleet.use_postgres_fdw('notes', 'public.notes_%s')");
is($router->safe_psql('postgres', "INSERT INTO notes VALUES (snowflake.next_id(12), 'here') RETURNING tableoid::regclass"), 'notes_shard_12', 'a row is inserted through the partition with other remote names');
is($fleet->node('c')->safe_psql('postgres', 'SELECT note FROM public.notes_12'), 'here', 'the row is in the table of its shard on the server');
$router->safe_psql('postgres', 'CALL snowflake_fleet.use_postgres_fdw()');
is($router->safe_psql('postgres', "SELECT count(*) FROM pg_inherits WHERE inhparent = 'notes'::regclass"), '18', 'the call for all tables uses the other remote names for new shards');

done_testing();
