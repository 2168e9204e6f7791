# Tests the program snowflake-push-map, which copies the shard map from the control database to other servers. If the
# shard map of the control database is older than a copy, the program must correct the shard map from the copy.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use IO::Socket::INET;
use IPC::Run;
use Snowflake::Fleet;
use Snowflake::Node;
use Test::More;
use Time::HiRes qw(time);

my $fleet = Snowflake::Fleet->new({ a => [ 0 .. 3 ], b => [ 4 .. 7 ] }, routers => ['router']);
my ($control, $a, $b, $router) = map { $fleet->node($_) } 'control', 'a', 'b', 'router';
$fleet->control("SELECT snowflake_fleet.set_server('router', " . Snowflake::Fleet::quote($fleet->conninfo('router')) . ')');

sub push_map
{
	my (@arguments) = @_;
	my ($out, $err) = ('', '');
	my $run = IPC::Run::start([ "$FindBin::RealBin/../bin/snowflake-push-map", @arguments ], '<', \undef, '>', \$out, '2>', \$err, IPC::Run::timeout(120));
	$run->finish;
	return { status => $run->full_result >> 8, out => $out, err => $err };
}
my $conninfo = $fleet->conninfo('control');
sub home { return $_[0]->safe_psql('postgres', "SELECT server FROM snowflake_fleet.map WHERE shard = $_[1]"); }
sub version { return $_[0]->safe_psql('postgres', 'SELECT snowflake_fleet.map_version()'); }

my $result = push_map($conninfo);
is_deeply($result, { status => 0, err => '', out => "a: taken\nb: taken\nrouter: taken\nversion ${\version($control)}: 3 of 3 servers have it\n" },
	'all servers have the new map to all that are in it, those without shards as well');
like(push_map($conninfo)->{out}, qr/\Aa: had it\nb: had it\nrouter: had it\nversion \d+: 3 of 3/, 'a second push reports that the servers had the map');
like(push_map()->{out}, qr/^usage:/m, 'without arguments the program prints its usage');
is(push_map()->{status}, 2, 'without arguments the exit status is 2');
is(push_map('--help')->{status}, 0, '--help has exit status 0');
like(push_map('--version')->{out}, qr/snowflake-push-map \d+\.\d+/, '--version prints the name and the version');
is(push_map('--nothing')->{status}, 2, 'an unknown option has exit status 2');
$result = push_map("host='x password=secret");
is($result->{status}, 2, 'a connection string with a syntax error has exit status 2');
unlike($result->{err}, qr/secret/, 'the error does not repeat the connection string');
like(push_map('host=/nowhere dbname=x')->{err}, qr/^the control database: .*No such file/m, 'the error names a control database that does not exist');

# Servers that do not answer, or refuse the shard map, must not prevent other servers from getting the shard map.
my $silent = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1') or die $!;
$fleet->control("SELECT snowflake_fleet.set_server('silent', 'host=127.0.0.1 port=${\$silent->sockport} dbname=x')");
$fleet->control("SELECT snowflake_fleet.set_server('gone', 'host=/nowhere dbname=x')");
$fleet->control("SELECT snowflake_fleet.set_server('stopped', " . Snowflake::Fleet::quote($fleet->conninfo('b') =~ s/dbname=postgres/dbname=template1/r) . ')');
my $began = time;
$result = push_map('--timeout', 5, $conninfo, 'host=/nowhere dbname=y');
cmp_ok(time - $began, '<', 60, 'the program does not wait longer than its timeout for a silent server');
is($result->{status}, 1, 'the exit status is 1 if a server does not have the map');
like($result->{err}, qr/^silent: not reached: (?:no answer in time|.*timeout)/m, 'the output names the silent server');
like($result->{err}, qr/^gone: not reached: .*No such file/m, 'the output names the server that does not exist');
like($result->{err}, qr/^stopped: refused: schema "snowflake_fleet" does not exist/m, 'the output names the server that refuses');
like($result->{err}, qr/^number 1 of those given: not reached/m, 'the output names a server that was given as an argument');
like($result->{err}, qr/^version \d+: 3 of 7 servers have it, 4 do not\n\z/m, 'the last line counts the servers with and without the map');
is(version($a), version($control), 'the other servers have the new map');
$fleet->control("SELECT snowflake_fleet.drop_server('$_')") foreach 'silent', 'gone', 'stopped';
push_map($conninfo);

# Restores the control database from a dump that is older than the move of a shard.
my $dump = $control->basedir . '/control.dump';
$control->command_ok([ 'pg_dump', '-Fc', '-d', $control->connstr('postgres'), '-f', $dump ], 'the control database is dumped');
$fleet->control("SELECT snowflake_fleet.move(3, 'a', 'b')");
is(push_map($conninfo)->{status}, 0, 'a shard moves');
my $lost = version($control);
$control->safe_psql('template1', 'DROP DATABASE postgres WITH (FORCE)');
$control->command_ok([ 'createdb', '-h', $control->host, '-p', $control->port, '--maintenance-db=template1', 'postgres' ], 'the database with the map is created again, without the map');
IPC::Run::run([ 'pg_restore', '-d', $control->connstr('postgres'), $dump ], '2>', \my $ignored);
is(home($control, 3), 'a', 'the restored control database has the map from before the move');
my %refused = (sqlstate => 55000, message => 'the shard map in this database may be older than its copies', detail => 'restored from a dump', hint => 'snowflake-push-map --recover');
$control->refuses($_, \%refused, "the restored control database refuses $_") foreach "SELECT snowflake_fleet.assign('[20,21)', 'a')", "SELECT snowflake_fleet.move(3, 'a', 'b')",
  "SELECT snowflake_fleet.set_server('x', 'host=x')", "SELECT snowflake_fleet.drop_server('router')", 'SELECT snowflake_fleet.change_map()';
$result = push_map($conninfo);
is($result->{status}, 1, 'the map of the restored control database is not pushed');
like($result->{err}, qr/^a: has version $lost, which is newer.*^the map of the control database is older.*--recover/ms, 'the output shows that the copies are newer');
is(home($_, 3), 'b', 'the copies of the map have not changed') foreach $a, $b, $router;

# If a server does not answer, --recover must fail, because the silent server may have the newest copy of the shard map.
$b->stop;
$result = push_map('--recover', $conninfo);
is($result->{status}, 1, '--recover fails while a server is stopped');
like($result->{err}, qr/^b: could not read the copy: .*^nothing is changed: 1 of 3 servers did not answer, and may have a newer copy/ms, 'the output shows that a stopped server may have a newer copy');
$control->refuses("SELECT snowflake_fleet.assign('[20,21)', 'a')", { %refused, detail => "A copy has version $lost" }, 'the control database still refuses changes');
$b->start;
$result = push_map('--recover', $conninfo);
is($result->{status}, 0, '--recover succeeds when all servers answer') or diag($result->{err});
like($result->{out}, qr/^a: has version $lost\n.*^the control database has version \d+\na: taken\n.*: 3 of 3 servers have it/ms, '--recover also pushes the map');
is(home($_, 3), 'b', 'the map of ' . $_->name . ' has the server of the moved shard') foreach $control, $a, $b, $router;
cmp_ok(version($control), '>', $lost, 'the recovered map has a newer version');
$fleet->control("SELECT snowflake_fleet.assign('[20,21)', 'a')");
is(push_map($conninfo)->{status}, 0, 'the recovered map can be changed and pushed');

# Starts the control database with an old data directory. Only a comparison with other servers shows that the shard map
# is old.
$control->stop;
$control->command_ok([ 'cp', '-a', $control->data_dir, $control->basedir . '/old' ], 'the data directory is copied');
$control->start;
$fleet->control("SELECT snowflake_fleet.move(2, 'a', 'b')");
push_map($conninfo);
$lost = version($control);
sub goes_back
{
	$control->stop;
	$control->command_ok([ 'sh', '-c', 'rm -r "$1" && cp -a "$2" "$1"', '-', $control->data_dir, $control->basedir . '/old' ], 'the old data directory is put back');
	$control->start;
	return;
}
goes_back();
is(push_map($conninfo)->{status}, 1, 'a push fails because the copies are newer');
$control->refuses("SELECT snowflake_fleet.assign('[21,22)', 'a')", { %refused, detail => "A copy has version $lost" }, 'after the failed push the control database refuses changes');
goes_back();
# Changes an old shard map until its version is greater than the version of its copies. Servers must refuse a shard map
# that does not continue the history of their copies.
$fleet->control("SELECT snowflake_fleet.assign('[21,22)', 'a')");
cmp_ok(version($control), '>', $lost, 'the old map has a greater version after changes');
$result = push_map($conninfo);
is($result->{status}, 1, 'a push of the changed old map fails');
like($result->{err}, qr/^a: refused: the new map was not made from version $lost, which this database has .*--recover/m, 'the output shows that the map does not follow the copies');
is(home($_, 2), 'b', 'the copies still have the server of the moved shard') foreach $a, $b, $router;
is(push_map('--recover', $conninfo)->{status}, 0, '--recover corrects the changed old map');
is(home($_, 2), 'b', 'the map of ' . $_->name . ' has the server of the moved shard') foreach $control, $a, $b, $router;
is($fleet->control('SELECT count(*) FROM snowflake_fleet.map WHERE shard = 21'), '0', 'changes of the old map are lost by --recover');

# The router is stopped during a move, and later accepts an old shard map that was changed after a restore. If two
# copies of the shard map were changed independently, an operator must decide which copy is right.
$control->stop;
$control->command_ok([ 'sh', '-c', 'rm -r "$2" && cp -a "$1" "$2"', '-', $control->data_dir, $control->basedir . '/old' ], 'the data directory is copied');
$control->start;
$router->stop;
$fleet->control("SELECT snowflake_fleet.move(1, 'a', 'b')");
is(push_map($conninfo)->{status}, 1, 'a push fails while the router is stopped');
$lost = version($control);
goes_back();
$router->start;
$fleet->control("SELECT snowflake_fleet.assign('[22,23)', 'a')");
is(push_map($conninfo)->{status}, 1, 'a push of the old map fails for the servers with the move');
is(home($router, 1), 'a', 'the router accepts the old map');
$result = push_map('--recover', $conninfo);
is($result->{status}, 1, '--recover fails if copies contradict each other');
like($result->{err}, qr/^nothing is changed: the copies contradict each other.*\n  shard 1: b by a, b by b, a by router\n.*--from SERVER/ms, 'the output shows the server of the shard by each copy');
is(push_map('--recover', '--from', 'nobody', $conninfo)->{status}, 1, '--recover --from an unknown server fails');
is(push_map('--from', 'a', $conninfo)->{status}, 2, '--from without --recover has exit status 2');
is(push_map('--recover', '--from', 'a', $conninfo)->{status}, 0, '--recover --from a server succeeds');
is(home($_, 1), 'b', 'the map of ' . $_->name . ' has the server of the moved shard') foreach $control, $a, $b, $router;

# Simulates a promotion of the control database in which no change was lost.
$fleet->control("UPDATE snowflake_fleet.map_state SET timeline = timeline + 1");
$control->refuses("SELECT snowflake_fleet.assign('[21,22)', 'a')", { %refused, detail => 'restored, recovered, promoted or copied' }, 'a promoted control database refuses changes');
$fleet->control('SELECT snowflake_fleet.map_recovered()');
$fleet->control("SELECT snowflake_fleet.assign('[21,22)', 'a')");
is(push_map($conninfo)->{status}, 0, 'the map can be pushed after map_recovered()');
$a->refuses('SELECT snowflake_fleet.map_recovered()', { sqlstate => 55000, message => 'has only a copy of the shard map' }, 'map_recovered() fails in a copy of the map');

# The shard map stores only its last 1000 versions. A server whose copy is older than the last 1000 versions must accept
# the new shard map.
my $before = version($control);
$fleet->control('DO $$ BEGIN FOR i IN 1 .. 1010 LOOP PERFORM snowflake_fleet.change_map(); END LOOP; END $$');
is($fleet->control("SELECT cardinality(history), history[1] > $before FROM snowflake_fleet.map_state"), '1000|t', 'the history is limited to 1000 versions');
is(push_map($conninfo)->{status}, 0, 'a copy that is older than the history accepts the map');

done_testing();
