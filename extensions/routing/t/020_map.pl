# Tests the shard map, which names the server of each shard: its functions, its version, and its copies on other
# servers.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Fleet;
use Snowflake::Node;
use Test::More;

my $fleet = Snowflake::Fleet->new({ a => [ 0 .. 7 ], b => [ 8 .. 15 ] });
my ($control, $a, $b) = map { $fleet->node($_) } 'control', 'a', 'b';

sub map_of { return $_[0]->safe_psql('postgres', 'SELECT shard, server, conninfo, version FROM snowflake_fleet.map ORDER BY shard'); }

is($control->safe_psql('postgres', 'SELECT server, count(*) FROM snowflake_fleet.map GROUP BY 1 ORDER BY 1'),
	"a|8\nb|8", 'the map has the shards that were assigned');
is(map_of($a), map_of($control), 'the copy of the map on a server equals the original');
is($a->safe_psql('postgres', 'SELECT snowflake_fleet.server_of(snowflake.next_id(3)), snowflake_fleet.server_of(snowflake.next_id(9))'),
	'a|b', 'server_of() returns the server of the id\'s shard, whichever server minted the id');
$a->refuses("SELECT snowflake_fleet.server_of(snowflake.make_id('2026-01-01', 16, 0))",
	{ sqlstate => 55000, message => 'shard 16 is not in the shard map', detail => 'version \d+', hint => 'assign' },
	'server_of() refuses an id whose shard is not in the shard map');
$a->refuses('SELECT snowflake_fleet.server_of(-1)', { sqlstate => 22003, message => 'not an id' }, 'server_of() refuses a number that is not an id');

# Only a change of the shard map increases its version.
my $version = $fleet->control('SELECT snowflake_fleet.map_version()');
my $channel = $control->session;
$channel->query_safe('LISTEN snowflake_map');
foreach (
	[ 'set_server' => "SELECT snowflake_fleet.set_server('c', 'host=c')" ],
	[ 'set_server again' => "SELECT snowflake_fleet.set_server('c', 'host=c port=5433')" ],
	[ 'assign' => "SELECT snowflake_fleet.assign('[16,18)', 'c')" ],
	[ 'move' => "SELECT snowflake_fleet.move(16, 'c', 'b')" ],
	[ 'change_map' => 'SELECT snowflake_fleet.change_map()' ])
{
	my ($name, $sql) = @$_;
	my $next = $fleet->control($sql);
	cmp_ok($next, '>', $version, "$name: the version increases");
	is($fleet->control('SELECT snowflake_fleet.map_version()'), $next, "$name: the call returns the new version");
	$version = $next;
}
like($channel->query_safe('SELECT 1'), qr/snowflake_map" with payload "$version"/, 'a session that listens to snowflake_map receives the new version');
$channel->quit;
is($control->safe_psql('postgres', 'SELECT snowflake_fleet.export_map() = snowflake_fleet.export_map()'), 't', 'reading the map does not change its version');

my %refused = (
	'assign what is elsewhere' => [ "SELECT snowflake_fleet.assign('[0,2)', 'b')",
		{ sqlstate => 55006, message => 'shard 0 has its rows on server a', detail => 'does not move rows', hint => 'snowflake-move-shard' } ],
	'assign to nobody' => [ "SELECT snowflake_fleet.assign('[20,21)', 'nobody')",
		{ sqlstate => 42704, message => 'server nobody is not in the shard map', hint => 'set_server' } ],
	'assign null' => [ 'SELECT snowflake_fleet.assign(NULL, \'a\')', { sqlstate => 22023, message => 'out of range' } ],
	'assign without end' => [ "SELECT snowflake_fleet.assign('[5,)', 'a')", { sqlstate => 22023, message => 'out of range' } ],
	'assign nothing' => [ "SELECT snowflake_fleet.assign('empty', 'a')", { sqlstate => 22023, message => 'out of range' } ],
	'assign below 0' => [ "SELECT snowflake_fleet.assign('[-1,1)', 'a')", { sqlstate => 22023, message => 'out of range' } ],
	'move from elsewhere' => [ "SELECT snowflake_fleet.move(0, 'b', 'c')",
		{ sqlstate => 55000, message => 'shard 0 is not on server b', detail => 'on server a', hint => 'map' } ],
	'move what is not there' => [ "SELECT snowflake_fleet.move(99, 'b', 'c')",
		{ sqlstate => 55000, message => 'shard 99 is not on server b', detail => 'not in the shard map', hint => 'map' } ],
	'an option that is not known' => [ "SELECT snowflake_fleet.set_server('d', 'host=d oauth_client_secret=x')",
		{ sqlstate => 22023, message => 'unknown option', detail => 'The option is "oauth_client_secret"', hint => 'Remove the option' } ],
	'a URI' => [ "SELECT snowflake_fleet.set_server('d', 'postgresql://d/app')",
		{ sqlstate => 22023, message => 'is invalid', detail => 'begins at position 1\.', hint => 'host=.*not as a URI' } ],
	'no name' => [ "SELECT snowflake_fleet.set_server('', 'host=d')", { sqlstate => 22023, message => '1 to 50 bytes' } ],
	'null' => [ "SELECT snowflake_fleet.set_server('d', NULL)", { sqlstate => 22004, message => 'not be null' } ],
	'drop a server with shards' => [ "SELECT snowflake_fleet.drop_server('a')",
		{ sqlstate => '2BP01', message => 'server a still has shards', detail => 'has shards .*8', hint => 'Move' } ],
	'drop a server that is not there' => [ "SELECT snowflake_fleet.drop_server('z')", { sqlstate => 42704, message => 'server z is not in the shard map' } ]);
# The shard map must refuse connection strings that contain a password, and no error message may contain the password.
foreach my $conninfo (map { s/'/''/gr } "host=d password='hunter2'", 'password = hunter2 host=d', 'host=d sslpassword=hunter2', "host=d sslpassword='hunter2", "host=d pass'hunter2",
	'postgresql://u:hunter2@d/app', 'postgres://u:hunter2@d', 'postgresql:///app?password=hunter2', 'hunter2', 'host=d scram_client_key=hunter2')
{
	my $error = $control->error_of("SELECT snowflake_fleet.set_server('d', '$conninfo')");
	like($error, qr/ERROR:  22023: (?:a connection string in the shard map|connection string is invalid)/, "a connection string with a password is refused: $conninfo");
	unlike($error =~ s/^(?:LINE 1|STATEMENT):.*//mgr, qr/hunt/, "the error does not repeat the password of $conninfo");
}
$refused{"copied: $_"} = [ "SELECT snowflake_fleet.import_map('$_')", { sqlstate => 22023, message => 'must not contain a password' } ]
  foreach '{"version": 1, "history": [], "shards": {}, "servers": {"d": "host=d password=x"}}';
my $before = map_of($control);
$control->refuses(@{ $refused{$_} }, $_) foreach sort keys %refused;
is(map_of($control), $before, 'refused calls have not changed the map');

# Tests copies of the shard map on other servers.
my $old = $fleet->control('SELECT snowflake_fleet.export_map()');
$fleet->control("SELECT snowflake_fleet.move(17, 'c', 'a'); SELECT snowflake_fleet.drop_server('c')");
$fleet->push_map('a');
is(map_of($a), map_of($control), 'a newer map replaces a copy');
is($a->safe_psql('postgres', 'SELECT snowflake_fleet.import_map(' . Snowflake::Fleet::quote($old) . ')'), 'f', 'import_map() of an older map returns false');
is(map_of($a), map_of($control), 'import_map() of an older map does not change the copy');
$a->refuses($_, { sqlstate => 55000, message => 'has only a copy of the shard map', detail => 'version', hint => 'control database' }, "a copy of the map cannot be changed: $_")
  foreach "SELECT snowflake_fleet.assign('[30,31)', 'a')", "SELECT snowflake_fleet.move(0, 'a', 'b')", 'SELECT snowflake_fleet.change_map()',
  "SELECT snowflake_fleet.set_server('e', '')", "SELECT snowflake_fleet.drop_server('b')";
$control->refuses("SELECT snowflake_fleet.import_map('$old')",
	{ sqlstate => 55000, message => 'its own map', hint => 'route queries' }, 'import_map() fails in the control database');
$a->refuses("SELECT snowflake_fleet.import_map('$_')", { sqlstate => 22023, message => 'is not a map' }, "import_map() refuses a value that is not a map: $_")
  foreach '{}', '[]', 'null', '{"version": 1, "history": [], "servers": {}, "shards": 3}', '{"version": 1, "servers": {}, "shards": {}}';
$b->safe_psql('postgres', 'CREATE EXTENSION dblink');
my $conninfo = Snowflake::Fleet::quote($fleet->conninfo('control'));
is($b->safe_psql('postgres', "SELECT snowflake_fleet.pull_map($conninfo), snowflake_fleet.pull_map($conninfo)"), 't|f', 'pull_map() imports the map once');
is(map_of($b), map_of($control), 'the map that pull_map() imported equals the original');
my $uri = 'postgresql:///postgres?port=' . $control->port . '&host=' . $control->host =~ s{/}{%2F}gr;
is($b->safe_psql('postgres', "SELECT snowflake_fleet.pull_map('$uri')"), 'f', 'pull_map() accepts a connection URI');
is($b->safe_psql('postgres', "SELECT snowflake_fleet.with_timeouts('$_->[0]')"),
	"$_->[1]connect_timeout=10&keepalives_idle=30&keepalives_interval=10&keepalives_count=3&tcp_user_timeout=60000&$_->[2]", "with_timeouts() adds time limits, which the URI can override: $_->[0]")
  foreach [ 'postgres://a?b:c?d@h:1/db?connect_timeout=3', 'postgres://a?b:c?d@h:1/db?', 'connect_timeout=3' ], [ 'postgresql://h', 'postgresql://h?', '' ];
$a->refuses("SELECT snowflake_fleet.pull_map($conninfo)", { sqlstate => 55000, message => 'dblink', hint => 'CREATE EXTENSION' }, 'pull_map() fails without dblink');

my @writers = map { $control->start_writer("SELECT snowflake_fleet.assign('[$_,$_]', 'a') FROM generate_series(1, 20);\n") } 100 .. 103;
my %seen;
$seen{$_}++ foreach map { @{ $control->finish_writer($_)->{ids} } } @writers;
is(scalar(grep { $_ > 1 } values %seen), 0, 'changes at the same time have different versions');

is($control->safe_psql('postgres', <<~'SQL'), "a|b\nc d|e f'\\g\nh|\ni|jk", 'options_of() parses connection strings like libpq');
	SELECT * FROM snowflake_fleet.options_of('a=b') UNION ALL
	SELECT 'c d', value FROM snowflake_fleet.options_of(E'  c = \'e f\\\'\\\\g\' ') UNION ALL
	SELECT * FROM snowflake_fleet.options_of(E'h=\'\' i = j\\k')
	SQL

# Tests a control database without the extension snowflake.
$control->safe_psql('postgres', 'CREATE DATABASE plain');
$control->safe_psql('plain', "CREATE EXTENSION snowflake_routing CASCADE; SELECT snowflake_fleet.set_server('a', 'host=a'); SELECT snowflake_fleet.assign('[0,4)', 'a')");
$control->refuses("SELECT snowflake_fleet.server_of($version)", { sqlstate => 55000, message => 'extension "snowflake" is not installed', hint => 'server_of_shard' },
	'server_of() fails without the extension snowflake', 'plain');
is($control->safe_psql('plain', 'SELECT snowflake_fleet.server_of_shard(3)'), 'a', 'server_of_shard() works without the extension snowflake');

# The SQL scripts of the extensions, run with psql -f, must create the same objects as CREATE EXTENSION. If an ordinary
# role runs the SQL scripts, only the event triggers may be missing.
$control->safe_psql('postgres', 'CREATE ROLE operator LOGIN CREATEROLE; CREATE DATABASE scripted OWNER operator');
command_ok([ 'psql', '-Xq', '-U', 'operator', '-d', $control->connstr('scripted'), '-f', "$FindBin::RealBin/../../lease/snowflake_fleet.sql",
		'-f', "$FindBin::RealBin/../snowflake_routing.sql" ], 'an ordinary role can run the scripts with psql -f');
my $objects = <<~'SQL';
	SELECT pg_describe_object(classid, objid, 0) FROM pg_depend
	 WHERE refobjid = 'snowflake_fleet'::regnamespace AND classid <> 'pg_type'::regclass ORDER BY 1;
	SELECT p.proname, md5(prosrc), prosecdef, proconfig FROM pg_proc AS p
	 WHERE pronamespace = 'snowflake_fleet'::regnamespace ORDER BY 1, 2
	SQL
is($control->safe_psql('scripted', $objects), $control->safe_psql('plain', $objects), 'the scripts create the same objects as CREATE EXTENSION');
is($control->safe_psql('scripted', "SELECT snowflake_fleet.set_server('a', 'host=a'); SELECT name FROM snowflake_fleet.map_server", extra_params => [ '-U', 'operator' ]) =~ s/^\d+\n//r,
	'a', 'the ordinary role can change the map');

# All roles may read the shard map, but only its owner may change it.
$a->safe_psql('postgres', 'CREATE ROLE app LOGIN');
my $id = $a->safe_psql('postgres', 'SELECT snowflake.next_id(9)');
is($a->safe_psql('postgres', "SET ROLE app; SELECT snowflake_fleet.server_of($id), snowflake_fleet.map_version() > 0, count(*) > 0 FROM snowflake_fleet.map"),
	'b|t|t', 'an ordinary role can read the map');
$a->refuses("SET ROLE app; $_", { sqlstate => 42501, message => 'permission denied' }, "an ordinary role may not run $_")
  foreach "SELECT snowflake_fleet.import_map('{}')", 'DELETE FROM snowflake_fleet.map_shard', "SELECT snowflake_fleet.pull_map('')";

# Some commands of PostgreSQL lock a table before they check privileges. An ordinary role must not block readers of the
# shard map by a command that waits for a lock.
my $reader = $a->session;
$reader->query_safe('BEGIN; SELECT 1 FROM snowflake_fleet.map_shard, snowflake_fleet.map_state');
$a->refuses("SET lock_timeout = '300ms'; SET ROLE app; CREATE RULE r AS ON INSERT TO snowflake_fleet.$_ DO INSTEAD NOTHING",
	{ sqlstate => 42501, message => "must be owner of table $_" }, "the privilege check fails before $_ is locked")
  foreach 'map_shard', 'map_state';
$reader->quit;

done_testing();
