# A control database whose map is older than its copies is not trusted, and is corrected from a copy. And the program
# that pushes the map: who took it, who did not, and servers that do not answer.

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

# The program
my $result = push_map($conninfo);
is_deeply($result, { status => 0, err => '', out => "a: taken\nb: taken\nrouter: taken\nversion ${\version($control)}: 3 of 3 servers have it\n" },
	'the map is pushed to all that are in it, those without shards as well');
like(push_map($conninfo)->{out}, qr/\Aa: had it\nb: had it\nrouter: had it\nversion \d+: 3 of 3/, 'again: they have it');
like(push_map()->{out}, qr/^usage:/m, 'without arguments: usage');
is(push_map()->{status}, 2, '... and exit status 2');
is(push_map('--help')->{status}, 0, '--help');
like(push_map('--version')->{out}, qr/snowflake-push-map \d+\.\d+/, '--version');
is(push_map('--nothing')->{status}, 2, 'an unknown option');
$result = push_map("host='x password=secret");
is($result->{status}, 2, 'a connection string that cannot be read');
unlike($result->{err}, qr/secret/, '... is not repeated');
like(push_map('host=/nowhere dbname=x')->{err}, qr/^the control database: .*No such file/m, 'a control database that is not there');

# If servers are missing, do not answer or refuse, the others accept the map, and the last line counts the failures.
my $silent = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1') or die $!;
$fleet->control("SELECT snowflake_fleet.set_server('silent', 'host=127.0.0.1 port=${\$silent->sockport} dbname=x')");
$fleet->control("SELECT snowflake_fleet.set_server('gone', 'host=/nowhere dbname=x')");
$fleet->control("SELECT snowflake_fleet.set_server('stopped', " . Snowflake::Fleet::quote($fleet->conninfo('b') =~ s/dbname=postgres/dbname=template1/r) . ')');
my $began = time;
$result = push_map('--timeout', 5, $conninfo, 'host=/nowhere dbname=y');
cmp_ok(time - $began, '<', 60, 'a server that accepts and does not answer is not waited for');
is($result->{status}, 1, 'not all have it: exit status 1');
like($result->{err}, qr/^silent: not reached: (?:no answer in time|.*timeout)/m, 'the silent one is named');
like($result->{err}, qr/^gone: not reached: .*No such file/m, 'so is the one that is not there');
like($result->{err}, qr/^stopped: refused: schema "snowflake_fleet" does not exist/m, 'and the one that refuses');
like($result->{err}, qr/^number 1 of those given: not reached/m, 'and one that was given');
like($result->{err}, qr/^version \d+: 3 of 7 servers have it, 4 do not\n\z/m, 'and how many');
is(version($a), version($control), 'the others took it');
$fleet->control("SELECT snowflake_fleet.drop_server('$_')") foreach 'silent', 'gone', 'stopped';
push_map($conninfo);

# Restored from a dump that is older than a move
my $dump = $control->basedir . '/control.dump';
$control->command_ok([ 'pg_dump', '-Fc', '-d', $control->connstr('postgres'), '-f', $dump ], 'the control database is dumped');
$fleet->control("SELECT snowflake_fleet.move(3, 'a', 'b')");
is(push_map($conninfo)->{status}, 0, 'a shard moves');
my $lost = version($control);
$control->safe_psql('template1', 'DROP DATABASE postgres WITH (FORCE)');
$control->command_ok([ 'createdb', '-h', $control->host, '-p', $control->port, '--maintenance-db=template1', 'postgres' ], 'it is gone');
IPC::Run::run([ 'pg_restore', '-d', $control->connstr('postgres'), $dump ], '2>', \my $ignored);
is(home($control, 3), 'a', 'restored, it has the map from before');
my %refused = (sqlstate => 55000, message => 'the map here may be older than its copies', detail => 'restored from a dump', hint => 'snowflake-push-map --recover');
$control->refuses($_, \%refused, "restored: $_") foreach "SELECT snowflake_fleet.assign('[20,21)', 'a')", "SELECT snowflake_fleet.move(3, 'a', 'b')",
  "SELECT snowflake_fleet.set_server('x', 'host=x')", "SELECT snowflake_fleet.drop_server('router')", 'SELECT snowflake_fleet.change_map()';
$result = push_map($conninfo);
is($result->{status}, 1, 'nor is its map pushed');
like($result->{err}, qr/^a: has version $lost, which is newer.*^the control database has an older map.*--recover/ms, '... and it says why');
is(home($_, 3), 'b', 'the copies are as they were') foreach $a, $b, $router;

# While a copy does not answer, no decision is made, because that copy may be the newest.
$b->stop;
$result = push_map('--recover', $conninfo);
is($result->{status}, 1, 'not while a server is down');
like($result->{err}, qr/^b: not asked: .*^nothing is changed: 1 of 3 servers may have a newer copy/ms, '... and it says so');
$control->refuses("SELECT snowflake_fleet.assign('[20,21)', 'a')", { %refused, detail => "A copy has version $lost" }, 'still refused');
$b->start;
$result = push_map('--recover', $conninfo);
is($result->{status}, 0, 'recovered') or diag($result->{err});
like($result->{out}, qr/^a: has version $lost\n.*^the control database has version \d+\na: taken\n.*: 3 of 3 servers have it/ms, '... and pushed');
is(home($_, 3), 'b', 'the shard is where it was moved') foreach $control, $a, $b, $router;
cmp_ok(version($control), '>', $lost, 'by a newer version');
$fleet->control("SELECT snowflake_fleet.assign('[20,21)', 'a')");
is(push_map($conninfo)->{status}, 0, 'it may be changed again');

# An old copy of the data directory is detected only by the copies of the map.
$control->stop;
$control->command_ok([ 'cp', '-a', $control->data_dir, $control->basedir . '/old' ], 'the data directory is copied');
$control->start;
$fleet->control("SELECT snowflake_fleet.move(2, 'a', 'b')");
push_map($conninfo);
$lost = version($control);
sub goes_back
{
	$control->stop;
	$control->command_ok([ 'sh', '-c', 'rm -r "$1" && cp -a "$2" "$1"', '-', $control->data_dir, $control->basedir . '/old' ], 'it goes back');
	$control->start;
	return;
}
goes_back();
is(push_map($conninfo)->{status}, 1, 'pushed: the copies are newer');
$control->refuses("SELECT snowflake_fleet.assign('[21,22)', 'a')", { %refused, detail => "A copy has version $lost" }, 'from then on it is not changed');
goes_back();
# If its map is changed first, it has the greater version. The copies detect that it does not follow theirs.
$fleet->control("SELECT snowflake_fleet.assign('[21,22)', 'a')");
cmp_ok(version($control), '>', $lost, 'changed at once, it has a greater version');
$result = push_map($conninfo);
is($result->{status}, 1, 'the copies refuse it');
like($result->{err}, qr/^a: refused: the map that arrives does not follow version $lost, which is here .*--recover/m, '... and say why');
is(home($_, 2), 'b', 'and know where the shard is') foreach $a, $b, $router;
is(push_map('--recover', $conninfo)->{status}, 0, 'recovered');
is(home($_, 2), 'b', 'the shard is where it was moved') foreach $control, $a, $b, $router;
is($fleet->control('SELECT count(*) FROM snowflake_fleet.map WHERE shard = 21'), '0', 'what was said meanwhile is to be said again');

# The same with a router that was down, missed the move, and takes the map that went back for newer: which is right is for people to say.
$control->stop;
$control->command_ok([ 'sh', '-c', 'rm -r "$2" && cp -a "$1" "$2"', '-', $control->data_dir, $control->basedir . '/old' ], 'the data directory is copied');
$control->start;
$router->stop;
$fleet->control("SELECT snowflake_fleet.move(1, 'a', 'b')");
is(push_map($conninfo)->{status}, 1, 'a move while the router is down');
$lost = version($control);
goes_back();
$router->start;
$fleet->control("SELECT snowflake_fleet.assign('[22,23)', 'a')");
is(push_map($conninfo)->{status}, 1, 'pushed from before it');
is(home($router, 1), 'a', 'the router cannot know');
$result = push_map('--recover', $conninfo);
is($result->{status}, 1, 'nothing is decided');
like($result->{err}, qr/^nothing is changed: the copies do not follow one another.*\n  shard 1: b by a, b by b, a by router\n.*--from SERVER/ms, '... and both answers are shown');
is(push_map('--recover', '--from', 'nobody', $conninfo)->{status}, 1, 'nor by the copy of nobody');
is(push_map('--from', 'a', $conninfo)->{status}, 2, '--from alone');
is(push_map('--recover', '--from', 'a', $conninfo)->{status}, 0, 'a is right');
is(home($_, 1), 'b', 'the shard is where it was moved') foreach $control, $a, $b, $router;

# Promoted, with nothing lost
$fleet->control("UPDATE snowflake_fleet.map_state SET timeline = timeline + 1");
$control->refuses("SELECT snowflake_fleet.assign('[21,22)', 'a')", { %refused, detail => 'restored, recovered, promoted or copied' }, 'on another timeline');
$fleet->control('SELECT snowflake_fleet.map_recovered()');
$fleet->control("SELECT snowflake_fleet.assign('[21,22)', 'a')");
is(push_map($conninfo)->{status}, 0, 'an operator knows that nothing was lost');
$a->refuses('SELECT snowflake_fleet.map_recovered()', { sqlstate => 55000, message => 'has a copy of the map' }, 'a copy recovers nothing');

# More changes than the history has: a copy that is older than all of it still takes the map.
my $before = version($control);
$fleet->control('DO $$ BEGIN FOR i IN 1 .. 1010 LOOP PERFORM snowflake_fleet.change_map(); END LOOP; END $$');
is($fleet->control("SELECT cardinality(history), history[1] > $before FROM snowflake_fleet.map_state"), '1000|t', 'the history has 1000 versions');
is(push_map($conninfo)->{status}, 0, 'a copy from before them takes the map');

done_testing();
