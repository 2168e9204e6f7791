# postgres_fdw over the map: partitions by shard that are foreign tables; a statement by id reaches one server.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../t/lib";
use Snowflake::Fleet;
use Snowflake::Ledger;
use Snowflake::Node;
use Test::More;

my $fleet = Snowflake::Fleet->new({ a => [ 0 .. 5 ], b => [ 6 .. 10 ], c => [ 11 .. 15 ] }, routers => ['router']);
my $router = $fleet->node('router');
my %home = map { my $name = $_; map { $_ => $name } @{ $fleet->{shards}{$name} } } @{ $fleet->{names} };

$router->safe_psql('postgres', 'CREATE TABLE users (id bigint NOT NULL DEFAULT snowflake.next_id(0), name text) PARTITION BY HASH (id snowflake.by_shard)');
$router->refuses("CALL snowflake_fleet.use_postgres_fdw('users')", { sqlstate => 55000, message => '"postgres_fdw" is not installed', hint => 'CREATE EXTENSION' }, 'without postgres_fdw');
$router->safe_psql('postgres', <<~'SQL');
	CREATE EXTENSION postgres_fdw;
	CREATE TABLE plain (id bigint);
	CREATE TABLE by_hash (id bigint) PARTITION BY HASH (id);
	CREATE TABLE with_key (id bigint PRIMARY KEY) PARTITION BY HASH (id snowflake.by_shard);
	CREATE TABLE local (id bigint) PARTITION BY HASH (id snowflake.by_shard);
	CREATE TABLE local_0 PARTITION OF local FOR VALUES WITH (MODULUS 2, REMAINDER 0);
	SQL
$router->refuses("CALL snowflake_fleet.use_postgres_fdw($_->[0])", $_->[1], "not: $_->[0]") foreach
  [ "'plain'", { sqlstate => 42809, message => 'plain is not partitioned by shard', hint => 'by_shard' } ],
  [ "'by_hash'", { sqlstate => 42809, message => 'by_hash is not partitioned by shard' } ],
  [ 'NULL', { sqlstate => 42809, message => 'null is not partitioned by shard' } ],
  [ "'with_key'", { sqlstate => 42809, message => 'with_key has a key', detail => 'no keys over foreign tables', hint => 'Drop' } ],
  [ "'local'", { sqlstate => 42809, message => 'partition public.local_0 was not made by', detail => 'modulus 2', hint => 'Detach' } ],
  [ "'users', 'public.users'", { sqlstate => 22023, message => '"public.users" names no table of a shard', hint => 'shard_%s' } ],
  [ "'users', 'users_%s'", { sqlstate => 22023, message => '"users_%s" names no table of a shard' } ];

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
is($made, join("\n", map { "FOR VALUES WITH (modulus 256, remainder $_) snowflake_$home{$_} schema_name=shard_$_,table_name=users" } sort { "$a" cmp "$b" } 0 .. 15),
	'a foreign partition for each shard, on its server');
my $oids = "SELECT md5(string_agg(inhrelid::text, ',' ORDER BY inhrelid)) FROM pg_inherits WHERE inhparent = 'users'::regclass";
my $before = $router->safe_psql('postgres', $oids);
$router->safe_psql('postgres', "CALL snowflake_fleet.use_postgres_fdw('users')");
is($router->safe_psql('postgres', $oids), $before, 'called again, it leaves them alone');

# INSERT mints in the router's region, whichever server takes the row; COPY as well.
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
	ok($result->{well}, 'a client') or diag($result->{errors});
	$own{ $_ >> 18 & 31 }++ foreach @{ $result->{ids} };
	$ledger->record($ledger->anonymous . ($writer->{name} =~ s/.writer.*//r), @{ $result->{ids} }) if $writer->{name} =~ /router/;
	$ledger->{holder}{$_}++ ? fail("$_ twice") : 1 foreach $writer->{name} =~ /router/ ? () : @{ $result->{ids} };
}
is($own{$region}, 1200, 'ids of the router have its region');
is(scalar(keys %{ $ledger->{holder} }), 1600, 'no id twice over all servers');
$router->safe_psql('postgres', "COPY users (name) FROM PROGRAM 'yes copied | head -n 100'");
is($fleet->node('a')->safe_psql('postgres', "SELECT count(*), count(*) FILTER (WHERE snowflake.region_of(id) = $region) FROM shard_0.users WHERE name = 'copied'"),
	'100|100', 'COPY goes to the server of the shard');
is($router->safe_psql('postgres', 'SELECT count(*), count(DISTINCT id), bool_and(tableoid::regclass::text = \'users_shard_\' || snowflake.shard_of(id)) FROM users'),
	'1700|1700|t', 'every row is in the partition of its shard');

# A statement by id is for one server: by its plan, and by what the others saw.
my $id = $fleet->node('b')->safe_psql('postgres', 'SELECT max(id) FROM shard_9.users');
like($router->safe_psql('postgres', "EXPLAIN (VERBOSE, COSTS OFF) SELECT * FROM users WHERE id = $id"),
	qr/\AForeign Scan on public.users_shard_9 users\n(?!.*Foreign Scan).*Remote SQL: SELECT id, name FROM shard_9.users WHERE \(\(id = $id/s, 'SELECT, by its plan');
like($router->safe_psql('postgres', "SET plan_cache_mode = force_generic_plan; PREPARE p(bigint) AS SELECT * FROM users WHERE id = \$1; EXPLAIN (VERBOSE, COSTS OFF) EXECUTE p($id)"),
	qr/Subplans Removed: 15\n.*Remote SQL: SELECT id, name FROM shard_9.users/s, '... by a generic plan');
like($router->safe_psql('postgres', "EXPLAIN (VERBOSE, COSTS OFF) UPDATE users SET name = 'x' WHERE id = $id"),
	qr/Foreign Update on public.users_shard_9.*Remote SQL: UPDATE shard_9.users SET name = 'x'::text WHERE \(\(id = $id/s, 'UPDATE, by its plan');
like($router->safe_psql('postgres', "EXPLAIN (VERBOSE, COSTS OFF) DELETE FROM users WHERE id = $id"),
	qr/Foreign Delete on public.users_shard_9.*Remote SQL: DELETE FROM shard_9.users WHERE \(\(id = $id/s, 'DELETE, by its plan');

# One connection for each server that is asked, so none where none was.
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
is(asked("SELECT name FROM users WHERE id = $id"), 'user 9 by b', 'SELECT by id asks one server');
is(asked("UPDATE users SET name = 'changed' WHERE id = $id RETURNING name"), 'changed by b', 'UPDATE by id asks one server');
is(asked("SELECT name FROM users WHERE id IN ($id, (1 << 10))"), 'changed by a b', 'two ids ask two');
is(asked("DELETE FROM users WHERE id = $id RETURNING name"), 'changed by b', 'DELETE by id asks one server');
is(asked("SELECT count(*) FROM users WHERE id = $id"), '0 by b', 'and it is gone');
is(asked('SELECT count(*) FROM users'), '1699 by a b c', 'all rows ask all');
is(asked("INSERT INTO users (id, name) VALUES (snowflake.next_id(9), 'new') RETURNING name"), 'new by b', 'INSERT asks the server of the shard');

# Shards that the map does not have are refused.
$router->refuses('INSERT INTO users (id) VALUES (snowflake.next_id(16))', { sqlstate => 23514, message => 'no partition of relation "users" found' }, 'an unknown shard');

# The partitions follow the map when they are made again: shard 3 goes to b, shard 15 away, 16 comes, a moves to another address.
$fleet->node('b')->safe_psql('postgres', "CALL snowflake.create_shards('template', '[3,3]'); INSERT INTO shard_3.users (name) VALUES ('moved')");
$fleet->node('c')->safe_psql('postgres', "CALL snowflake.create_shards('template', '[16,16]')");
$fleet->control("SELECT snowflake_fleet.move(3, 'a', 'b'); SELECT snowflake_fleet.assign('[16,16]', 'c'); DELETE FROM snowflake_fleet.map_shard WHERE shard = 15");
$fleet->control("SELECT snowflake_fleet.set_server('a', " . Snowflake::Fleet::quote($fleet->conninfo('a') . " application_name='another name'") . ')');
$fleet->push_map('router');
$router->safe_psql('postgres', "CALL snowflake_fleet.use_postgres_fdw('users')");
my @now = split /\n/, partitions();
my %made = map { $_ => 1 } split /\n/, $made;
is(join('; ', grep { !$made{$_} } @now), 'FOR VALUES WITH (modulus 256, remainder 16) snowflake_c schema_name=shard_16,table_name=users; FOR VALUES WITH (modulus 256, remainder 3) snowflake_b schema_name=shard_3,table_name=users',
	'what changed is made anew');
is(scalar(@now), 16, 'what is gone is gone');
is($router->safe_psql('postgres', 'SELECT array_agg(name) FROM users WHERE id >= 0 AND snowflake.shard_of(id) = 3'), '{moved}', 'and is read where it is');
is($router->safe_psql('postgres', "SELECT count(*) FROM pg_foreign_server WHERE srvname = 'snowflake_a' AND 'application_name=another name' = ANY (srvoptions)"),
	'1', 'a server is reached as the map says now');

# Tables that are partitions on the data servers, instead of schemas: the names say where.
$fleet->node($home{$_})->safe_psql('postgres', "CREATE TABLE public.notes_$_ (id bigint PRIMARY KEY, note text)") foreach 0 .. 14;
$fleet->node('c')->safe_psql('postgres', 'CREATE TABLE public.notes_16 (id bigint PRIMARY KEY, note text)');
$router->safe_psql('postgres', 'CREATE TABLE notes (id bigint NOT NULL, note text) PARTITION BY HASH (id snowflake.by_shard)');
$router->safe_psql('postgres', "CALL snowflake_fleet.use_postgres_fdw('notes', 'public.notes_%s')");
is($router->safe_psql('postgres', "INSERT INTO notes VALUES (snowflake.next_id(12), 'here') RETURNING tableoid::regclass"), 'notes_shard_12', 'other names');
is($fleet->node('c')->safe_psql('postgres', 'SELECT note FROM public.notes_12'), 'here', '... on the server');

done_testing();
