# PL/Proxy over the map: a call goes to the server that has the row, and follows the map.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use IO::Socket::INET;
use Snowflake::Fleet;
use Snowflake::Ledger;
use Snowflake::Node;
use Test::More;

my $fleet = Snowflake::Fleet->new({ a => [ 0 .. 5 ], b => [ 6 .. 10 ], c => [ 11 .. 15 ] }, routers => ['router']);
my $router = $fleet->node('router');

# It calls this: on each data server a function that finds the schema by itself.
my $user = <<~'SQL';
	CREATE FUNCTION sign_up(near bigint, name text) RETURNS bigint LANGUAGE plpgsql AS $$
	DECLARE id bigint;
	BEGIN
	  EXECUTE format('INSERT INTO %I.users (name) VALUES ($1) RETURNING id', snowflake.schema_of(near)) INTO id USING name;
	  RETURN id;
	END $$;
	CREATE FUNCTION user_name(id bigint) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE name text;
	BEGIN
	  EXECUTE format('SELECT name || %L FROM %I.users WHERE id = $1', ' on ' || current_setting('cluster_name'), snowflake.schema_of(id))
	     INTO name USING id;
	  RETURN name;
	END $$;
	SQL
$_->safe_psql('postgres', $user) foreach $fleet->nodes;

my %none = (sqlstate => 55000, message => '"plproxy" and "snowflake"', hint => 'CREATE EXTENSION');
$router->refuses('CALL snowflake_fleet.use_plproxy()', \%none, 'without PL/Proxy');
$router->safe_psql('postgres', 'CREATE EXTENSION plproxy');
$router->refuses("CALL snowflake_fleet.use_plproxy('')", { sqlstate => 22023, message => 'needs a name' }, 'without a name');
$router->safe_psql('postgres', 'CREATE FUNCTION plproxy.get_cluster_version(text) RETURNS integer LANGUAGE sql AS $$ SELECT 1 $$')
  if $router->safe_psql('postgres', "SELECT to_regnamespace('plproxy') IS NOT NULL") eq 't';
$router->safe_psql('postgres', <<~'SQL') if $router->safe_psql('postgres', "SELECT to_regnamespace('plproxy') IS NULL") eq 't';
	CREATE SCHEMA plproxy;
	CREATE FUNCTION plproxy.get_cluster_version(text) RETURNS integer LANGUAGE sql AS $$ SELECT 1 $$;
	SQL
$router->refuses('CALL snowflake_fleet.use_plproxy()',
	{ sqlstate => 42723, message => 'get_cluster_version\(text\) exists already', detail => 'that snowflake did not create', hint => 'Drop' },
	'clusters of somebody else are left alone');
$router->safe_psql('postgres', 'DROP FUNCTION plproxy.get_cluster_version(text)');
$router->safe_psql('postgres', 'CALL snowflake_fleet.use_plproxy()');
$router->safe_psql('postgres', 'CALL snowflake_fleet.use_plproxy()');
$router->safe_psql('postgres', <<~'SQL');
	CREATE FUNCTION sign_up(near bigint, name text) RETURNS bigint LANGUAGE plproxy AS
	  $$ CLUSTER 'snowflake'; RUN ON snowflake_fleet.run_on(near); $$;
	CREATE FUNCTION user_name(id bigint) RETURNS text LANGUAGE plproxy AS
	  $$ CLUSTER 'snowflake'; RUN ON snowflake_fleet.run_on(id); $$;
	CREATE FUNCTION user_name_masked(id bigint) RETURNS text LANGUAGE plproxy AS
	  $$ CLUSTER 'snowflake'; RUN ON snowflake.shard_of(id); TARGET user_name; $$;
	CREATE FUNCTION everywhere() RETURNS SETOF text LANGUAGE plproxy AS
	  $$ CLUSTER 'other'; RUN ON ALL; SELECT 'x'; $$;
	SQL

# Four clients sign up users by the router, in every shard.
my @writers = map {
	$router->start_writer(join '', map { "SELECT sign_up(snowflake.make_id('2026-01-01', $_, 0), 'user $_');\n" } (0 .. 15) x 40)
} 1 .. 4;
my $ledger = Snowflake::Ledger->new(shard_bits => 8);
foreach my $writer (@writers)
{
	my $result = $router->finish_writer($writer);
	ok($result->{well}, 'a client of the router') or diag($result->{errors});
	$ledger->record($ledger->anonymous, @{ $result->{ids} });
}
$ledger->check(4 * 16 * 40, 'through PL/Proxy');
my %home = map { my $name = $_; map { $_ => $name } @{ $fleet->{shards}{$name} } } @{ $fleet->{names} };
is(join(' ', map { my $name = $_; $fleet->node($name)->safe_psql('postgres',
			join(' UNION ALL ', map { "SELECT count(*) FROM shard_$_.users WHERE snowflake.shard_of(id) = $_ AND name = 'user $_'" } @{ $fleet->{shards}{$name} })) =~ s/\n/ /gr } 'a', 'b', 'c'),
	join(' ', (160) x 16), 'each row is in the schema that its id names, on the server of the map');
my @ids = map { $fleet->node($home{$_})->safe_psql('postgres', "SELECT max(id) FROM shard_$_.users") } 0 .. 15;
is($router->safe_psql('postgres', join ';', map { "SELECT user_name($ids[$_])" } 0 .. 15),
	join("\n", map { "user $_ on $home{$_}" } 0 .. 15), 'and is read by its id');

# Shards outside the map, and numbers that are not ids
my $unknown = $router->safe_psql('postgres', "SELECT snowflake.make_id('2026-01-01', 16, 0)");
$router->refuses("SELECT user_name($unknown)", { sqlstate => 55000, message => 'shard 16 is not in the map', hint => 'assign' }, 'an unknown shard');
like($router->error_of("SELECT user_name_masked($unknown)"), qr/shard 16 is not in the map/, '... also where PL/Proxy is told the number alone');
$router->refuses('SELECT user_name(-1)', { sqlstate => 22003, message => 'not an id' }, 'no id');
$router->refuses('SELECT * FROM everywhere()', { sqlstate => 42704, message => 'there is no cluster other', hint => 'CLUSTER' }, 'another cluster');

# A session follows the map: it names server b for shard 3, whose schema is empty there, then again the right server.
my $session = $router->session;
is($session->query_safe("SELECT user_name($ids[3])"), 'user 3 on a', 'before the map changes');
$fleet->node('b')->safe_psql('postgres', "CALL snowflake.create_shards('template', '[3,3]'); INSERT INTO shard_3.users VALUES ($ids[3], 'moved')");
$fleet->control("SELECT snowflake_fleet.move(3, 'a', 'b')");
is($session->query_safe("SELECT user_name($ids[3])"), 'user 3 on a', 'the copy is what counts');
$fleet->push_map('router');
is($session->query_safe("SELECT user_name($ids[3])"), 'moved on b', 'an open session follows a new copy');
$fleet->control("SELECT snowflake_fleet.move(3, 'b', 'a')");
$fleet->push_map('router');
is($session->query_safe("SELECT user_name($ids[3])"), 'user 3 on a', '... again');
$session->quit;

# Ordinary roles call, as themselves; what else is in the schema stays as it is.
$_->safe_psql('postgres', 'CREATE ROLE app LOGIN; GRANT USAGE ON SCHEMA shard_3 TO app; GRANT SELECT ON shard_3.users TO app') foreach $fleet->node('a');
$router->safe_psql('postgres', 'CREATE ROLE app LOGIN');
is($router->safe_psql('postgres', "SET SESSION AUTHORIZATION app; SELECT user_name($ids[3])"), 'user 3 on a', 'an ordinary role calls');
$router->refuses("SET SESSION AUTHORIZATION app; SELECT user_name($unknown)", { sqlstate => 55000, message => 'shard 16 is not in the map' }, '... and is told what others are told');
$router->refuses('SET ROLE app; CALL snowflake_fleet.use_plproxy()', { sqlstate => 42501, message => 'permission denied' }, '... but makes no cluster');
my $acl = "SELECT has_schema_privilege('app', 'plproxy', 'USAGE'), has_schema_privilege('app', 'plproxy', 'CREATE')";
is($router->safe_psql('postgres', $acl), 't|f', 'the schema is open, for use');
$router->safe_psql('postgres', 'REVOKE USAGE ON SCHEMA plproxy FROM PUBLIC');
my ($code, $out, $notice) = $router->psql('postgres', 'CALL snowflake_fleet.use_plproxy()');
like($notice, qr/NOTICE:  schema plproxy is not for everybody.*GRANT USAGE/s, 'who closed it is told, and obeyed');
is($router->safe_psql('postgres', $acl), 'f|f', '... it stays closed');
$router->safe_psql('postgres', 'DROP SCHEMA plproxy CASCADE; CREATE SCHEMA plproxy; CREATE TABLE plproxy.passwords (p text); GRANT SELECT ON plproxy.passwords TO PUBLIC');
$router->psql('postgres', 'CALL snowflake_fleet.use_plproxy()');
is($router->safe_psql('postgres', $acl), 'f|f', 'a schema with more in it is not opened');
$router->safe_psql('postgres', 'ALTER FUNCTION plproxy.get_cluster_partitions(text) OWNER TO app');
my %of_another = (sqlstate => 42501, detail => 'as himself', hint => 'OWNER TO');
$router->refuses('CALL snowflake_fleet.use_plproxy()', { %of_another, message => 'function plproxy.get_cluster_partitions\(text\) belongs to role app' }, 'a function that another role could change');
$router->safe_psql('postgres', 'DROP SCHEMA plproxy CASCADE; CREATE SCHEMA plproxy AUTHORIZATION app');
$router->refuses('CALL snowflake_fleet.use_plproxy()', { %of_another, message => 'schema plproxy belongs to role app' }, 'a schema that another role could change');
$router->safe_psql('postgres', 'GRANT EXECUTE ON PROCEDURE snowflake_fleet.use_plproxy(text) TO app; SET ROLE app; CALL snowflake_fleet.use_plproxy()');
is($router->safe_psql('postgres', 'SELECT count(*) FROM pg_proc WHERE pronamespace = to_regnamespace(\'plproxy\') AND proowner = to_regrole(\'app\')'), 3, 'its owner makes a cluster of his own');

# A server accepts and does not answer: PL/Proxy has no limit for connecting, and statement_timeout ends the call.
my $silent = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1') or die $!;
$fleet->control("SELECT snowflake_fleet.set_server('silent', 'dbname=x host=127.0.0.1 port=${\$silent->sockport}'); SELECT snowflake_fleet.assign('[16,16]', 'silent')");
$fleet->push_map('router');
$router->refuses("SET statement_timeout = '2s'; SELECT user_name($unknown)", { sqlstate => 57014, message => 'statement timeout' }, 'a silent server ends with statement_timeout');
like($router->safe_psql('postgres', 'SELECT string_agg(DISTINCT p, E\'\n\') FROM snowflake_fleet.partitions() AS p'), qr/\A(?:connect_timeout=10 keepalives_idle=30 \N+\n?)+\z/, 'every connection has time limits');

done_testing();
