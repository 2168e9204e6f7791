# Tests functions of PL/Proxy, which run on the server that the shard map names for the shard of an id.

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

# PL/Proxy calls sign_up() and user_name() on the server of the shard, where each shard is a schema.
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

my %none = (sqlstate => 55000, message => '"plproxy" or "snowflake"', hint => 'CREATE EXTENSION');
$router->refuses('CALL snowflake_fleet.use_plproxy()', \%none, 'use_plproxy() fails without PL/Proxy');
$router->safe_psql('postgres', 'CREATE EXTENSION plproxy');
$router->refuses("CALL snowflake_fleet.use_plproxy('')", { sqlstate => 22023, message => 'name of the cluster is null or empty' }, 'use_plproxy() refuses an empty name');
$router->safe_psql('postgres', 'CREATE FUNCTION plproxy.get_cluster_version(text) RETURNS integer LANGUAGE sql AS $$ SELECT 1 $$')
  if $router->safe_psql('postgres', "SELECT to_regnamespace('plproxy') IS NOT NULL") eq 't';
$router->safe_psql('postgres', <<~'SQL') if $router->safe_psql('postgres', "SELECT to_regnamespace('plproxy') IS NULL") eq 't';
	CREATE SCHEMA plproxy;
	CREATE FUNCTION plproxy.get_cluster_version(text) RETURNS integer LANGUAGE sql AS $$ SELECT 1 $$;
	SQL
$router->refuses('CALL snowflake_fleet.use_plproxy()',
	{ sqlstate => 42723, message => 'get_cluster_version\(text\) already exists', detail => 'that snowflake did not create', hint => 'Drop' },
	'use_plproxy() fails if there are cluster functions that snowflake did not create');
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

# Four clients insert users in every shard by calls of PL/Proxy functions.
my @writers = map {
	$router->start_writer(join '', map { "SELECT sign_up(snowflake.make_id('2026-01-01', $_, 0), 'user $_');\n" } (0 .. 15) x 40)
} 1 .. 4;
my $ledger = Snowflake::Ledger->new(shard_bits => 8);
foreach my $writer (@writers)
{
	my $result = $router->finish_writer($writer);
	ok($result->{well}, 'a client of the router has no error') or diag($result->{errors});
	$ledger->record($ledger->anonymous, @{ $result->{ids} });
}
$ledger->check(4 * 16 * 40, 'ids that were minted through PL/Proxy are unique');
my %home = map { my $name = $_; map { $_ => $name } @{ $fleet->{shards}{$name} } } @{ $fleet->{names} };
is(join(' ', map { my $name = $_; $fleet->node($name)->safe_psql('postgres',
			join(' UNION ALL ', map { "SELECT count(*) FROM shard_$_.users WHERE snowflake.shard_of(id) = $_ AND name = 'user $_'" } @{ $fleet->{shards}{$name} })) =~ s/\n/ /gr } 'a', 'b', 'c'),
	join(' ', (160) x 16), 'each row is in the schema of its shard, on the server of the map');
my @ids = map { $fleet->node($home{$_})->safe_psql('postgres', "SELECT max(id) FROM shard_$_.users") } 0 .. 15;
is($router->safe_psql('postgres', join ';', map { "SELECT user_name($ids[$_])" } 0 .. 15),
	join("\n", map { "user $_ on $home{$_}" } 0 .. 15), 'each row is found by its id through PL/Proxy');

# Calls for ids of unknown shards, and for numbers that are not ids, must fail.
my $unknown = $router->safe_psql('postgres', "SELECT snowflake.make_id('2026-01-01', 16, 0)");
$router->refuses("SELECT user_name($unknown)", { sqlstate => 55000, message => 'shard 16 is not in the shard map', hint => 'assign' }, 'a call for a shard outside the map fails');
like($router->error_of("SELECT user_name_masked($unknown)"), qr/shard 16 is not in the shard map/, 'a call with RUN ON of a shard number outside the map fails');
$router->refuses('SELECT user_name(-1)', { sqlstate => 22003, message => 'not an id' }, 'no id');
$router->refuses('SELECT * FROM everywhere()', { sqlstate => 42704, message => 'there is no cluster other', hint => 'CLUSTER' }, 'a function of an unknown cluster fails');

# After a change of the shard map, open sessions must use the new server of shard 3.
my $session = $router->session;
is($session->query_safe("SELECT user_name($ids[3])"), 'user 3 on a', 'an open session calls the server of the map');
$fleet->node('b')->safe_psql('postgres', "CALL snowflake.create_shards('template', '[3,3]'); INSERT INTO shard_3.users VALUES ($ids[3], 'moved')");
$fleet->control("SELECT snowflake_fleet.move(3, 'a', 'b')");
is($session->query_safe("SELECT user_name($ids[3])"), 'user 3 on a', 'an open session uses the copy of the map on the router');
$fleet->push_map('router');
is($session->query_safe("SELECT user_name($ids[3])"), 'moved on b', 'an open session follows a new copy');
$fleet->control("SELECT snowflake_fleet.move(3, 'b', 'a')");
$fleet->push_map('router');
is($session->query_safe("SELECT user_name($ids[3])"), 'user 3 on a', 'an open session follows the next copy of the map');
$session->quit;

# An ordinary role can call functions of PL/Proxy, which run with the rights of that role.
$_->safe_psql('postgres', 'CREATE ROLE app LOGIN; GRANT USAGE ON SCHEMA shard_3 TO app; GRANT SELECT ON shard_3.users TO app') foreach $fleet->node('a');
$router->safe_psql('postgres', 'CREATE ROLE app LOGIN');
is($router->safe_psql('postgres', "SET SESSION AUTHORIZATION app; SELECT user_name($ids[3])"), 'user 3 on a', 'an ordinary role can make a call');
$router->refuses("SET SESSION AUTHORIZATION app; SELECT user_name($unknown)", { sqlstate => 55000, message => 'shard 16 is not in the shard map' }, 'an ordinary role gets the error for a shard outside the map');
$router->refuses('SET ROLE app; CALL snowflake_fleet.use_plproxy()', { sqlstate => 42501, message => 'permission denied' }, 'an ordinary role may not call use_plproxy()');
my $acl = "SELECT has_schema_privilege('app', 'plproxy', 'USAGE'), has_schema_privilege('app', 'plproxy', 'CREATE')";
is($router->safe_psql('postgres', $acl), 't|f', 'PUBLIC has USAGE on the schema plproxy');
$router->safe_psql('postgres', 'REVOKE USAGE ON SCHEMA plproxy FROM PUBLIC');
my ($code, $out, $notice) = $router->psql('postgres', 'CALL snowflake_fleet.use_plproxy()');
like($notice, qr/NOTICE:  use_plproxy\(\) did not grant USAGE on schema plproxy to PUBLIC.*GRANT USAGE/s, 'use_plproxy() shows a notice if USAGE was revoked from PUBLIC');
is($router->safe_psql('postgres', $acl), 'f|f', 'use_plproxy() does not grant USAGE if it was revoked from PUBLIC');
$router->safe_psql('postgres', 'DROP SCHEMA plproxy CASCADE; CREATE SCHEMA plproxy; CREATE TABLE plproxy.passwords (p text); GRANT SELECT ON plproxy.passwords TO PUBLIC');
$router->psql('postgres', 'CALL snowflake_fleet.use_plproxy()');
is($router->safe_psql('postgres', $acl), 'f|f', 'use_plproxy() does not grant USAGE on a schema with other objects');
$router->safe_psql('postgres', 'ALTER FUNCTION plproxy.get_cluster_partitions(text) OWNER TO app');
my %of_another = (sqlstate => 42501, detail => 'with the rights of the role', hint => 'OWNER TO');
$router->refuses('CALL snowflake_fleet.use_plproxy()', { %of_another, message => 'function plproxy.get_cluster_partitions\(text\) belongs to role app' }, 'use_plproxy() fails if another role owns a cluster function');
$router->safe_psql('postgres', 'DROP SCHEMA plproxy CASCADE; CREATE SCHEMA plproxy AUTHORIZATION app');
$router->refuses('CALL snowflake_fleet.use_plproxy()', { %of_another, message => 'schema plproxy belongs to role app' }, 'use_plproxy() fails if another role owns the schema');
$router->safe_psql('postgres', 'GRANT EXECUTE ON PROCEDURE snowflake_fleet.use_plproxy(text) TO app; SET ROLE app; CALL snowflake_fleet.use_plproxy()');
is($router->safe_psql('postgres', 'SELECT count(*) FROM pg_proc WHERE pronamespace = to_regnamespace(\'plproxy\') AND proowner = to_regrole(\'app\')'), 3, 'the owner of the schema can call use_plproxy() if he has the privilege');

# If a server does not answer, statement_timeout ends the call, because PL/Proxy has no connection timeout.
my $silent = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1') or die $!;
$fleet->control("SELECT snowflake_fleet.set_server('silent', 'dbname=x host=127.0.0.1 port=${\$silent->sockport}'); SELECT snowflake_fleet.assign('[16,16]', 'silent')");
$fleet->push_map('router');
$router->refuses("SET statement_timeout = '2s'; SELECT user_name($unknown)", { sqlstate => 57014, message => 'statement timeout' }, 'a call to a silent server ends with statement_timeout');
like($router->safe_psql('postgres', 'SELECT string_agg(DISTINCT p, E\'\n\') FROM snowflake_fleet.partitions() AS p'), qr/\A(?:connect_timeout=10 keepalives_idle=30 \N+\n?)+\z/, 'every connection string for PL/Proxy has time limits');

done_testing();
