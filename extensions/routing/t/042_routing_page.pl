# Runs the SQL statements in doc/routing.md with psql, one after the other. The test replaces only the names of machines
# in the statements of doc/routing.md.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Node;
use Test::More;

my $page = slurp_file("$FindBin::RealBin/../../../doc/routing.md");
my %blocks;
foreach my $section (split /^(?=##* )/m, $page)
{
	my ($title) = $section =~ /^##* (.*)/ or next;
	push @{ $blocks{$title} }, $1 while $section =~ /^```(?:sh|sql)\n(.*?)^```$/gms;
}
sub next_block { return shift @{ $blocks{ $_[0] } } // BAIL_OUT("the page has no more commands under \"$_[0]\""); }
sub section_ends { is_deeply(delete $blocks{ $_[0] }, [], "all commands of \"$_[0]\" were typed"); return; }

my %node;
my $region = 0;
foreach my $name ('north', 'south', 'control', 'router')
{
	my $node = $node{$name} = Snowflake::Node->create($name, allows_streaming => 'logical', conf => "snowflake.region = ${\++$region}\n");
	$node->start;
	$node->safe_psql('postgres', 'CREATE DATABASE ' . ($name eq 'control' ? 'fleet' : 'app'));
}
my %where = map { ("host=$_->[0]" => 'host=' . $node{ $_->[1] }->host . ' port=' . $node{ $_->[1] }->port) }
  [ db1 => 'north' ], [ db2 => 'south' ], [ router => 'router' ], [ control => 'control' ];

# Runs statements with psql, which stops at the first error, and returns its output.
sub type_in
{
	my ($name, $commands, %replaced) = @_;
	my $node = $node{$name};
	%replaced = (%where, %replaced);
	$commands =~ s/\Q$_\E\b/$replaced{$_}/g foreach sort keys %replaced;
	my ($out, $err) = ('', '');
	my $well = IPC::Run::run([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr($name eq 'control' ? 'fleet' : 'app'), '-f', '-' ],
		'<', \$commands, '>', \$out, '2>', \$err);
	ok($well, "$name: " . ($commands =~ /^(?!--)(.*)/m)[0]) or diag($err);
	return $out;
}
sub shell
{
	my ($commands) = @_;
	$commands =~ s/\Q$_\E\b/$where{$_}/g foreach sort keys %where;
	my ($out, $err) = ('', '');
	local $ENV{PATH} = "$FindBin::RealBin/../bin:$ENV{PATH}";
	ok(IPC::Run::run([ 'bash', '-euc', $commands ], '>', \$out, '2>', \$err), 'runs: ' . ($commands =~ /\A(.*)/)[0]) or diag($err);
	return $out;
}

# Runs the sections of doc/routing.md that need only one server.
my $title = 'Partitions by shard';
like(type_in('north', next_block($title)), qr/^\d+\|messages_1$/m, 'the statement shows the row in the partition of its shard');
section_ends($title);
$title = 'A schema for each shard';
like(type_in('north', next_block($title)), qr/^\d+\|shard_5$/m, 'the statement shows the row in the schema of its shard');
section_ends($title);
$title = 'A shard column, and a trigger';
is(type_in('north', next_block($title)), "well\n5\n", 'the statements find a row by its id, and mint an id in the same shard');
section_ends($title);
$title = 'A shard for keys that are no ids';
is(type_in('north', next_block($title)), "67|67\n", 'the statement mints in the shard of a key');
section_ends($title);

$title = 'Over several servers';
my $data = next_block($title);
type_in('north', $data);
$data =~ s/'\[0,8\)'/'[8,16)'/ or BAIL_OUT('no shards');
type_in('south', $data);
like(type_in('control', next_block($title)), qr/^(?:\d+\|(?:north|south)\|\N+\n){16}\z/m, 'the statement shows the map of 16 shards');
type_in('router', next_block($title));
like(shell(next_block($title)), qr/^north: taken\nrouter: taken\nsouth: taken\n.*3 of 3 servers have it$/m, 'the command pushes the map to three servers');
section_ends($title);

$title = 'The control database was restored, or promoted';
$node{control}->safe_psql('fleet', 'UPDATE snowflake_fleet.map_state SET timeline = timeline + 1');
$node{control}->refuses("SELECT snowflake_fleet.assign('[16,17)', 'north')", { sqlstate => 55000, message => 'may be older than its copies' }, 'assign() fails with the error of the page', 'fleet');
like(shell(next_block($title)), qr/^the control database has version \d+\n.*3 of 3 servers have it$/ms, 'the command recovers the map');
section_ends($title);

$title = 'PL/Proxy';
my $function = next_block($title);
type_in($_, $function) foreach 'north', 'south';
is(type_in('router', next_block($title)), "\n", 'a call by PL/Proxy inserts a row');
my $ann = $node{north}->safe_psql('app', 'SELECT id FROM shard_5.users');
is($node{router}->safe_psql('app', "SELECT user_name($ann)"), 'Ann', 'a call by PL/Proxy finds the row on the server of its shard');
section_ends($title);

$title = 'postgres_fdw';
is(type_in('router', next_block($title)), "users_shard_12\n", 'an INSERT by postgres_fdw uses the partition of the shard');
is($node{south}->safe_psql('app', 'SELECT name FROM shard_12.users'), 'Bob', 'the inserted row is on the server of the shard');
type_in('router', next_block($title));
is($node{router}->safe_psql('app', q{SELECT count(*) FROM pg_user_mappings WHERE usename = 'app'}), '16', 'each foreign server has a user mapping');
section_ends($title);

$title = 'Moving a shard';
like(shell(next_block($title)), qr/^(?=.*shard 5 is on the target)(?=.*3 of 3 servers have it)/ms, 'the command moves a shard');
is($node{south}->safe_psql('app', 'SELECT name FROM shard_5.users'), 'Ann', 'the target has the rows of the moved shard');
is($node{router}->safe_psql('app', "SELECT user_name($ann), name FROM users WHERE id = $ann"), 'Ann|Ann', 'PL/Proxy and postgres_fdw find the row on the target');

# The other sections of doc/routing.md are run by scripts/citus and the tests of moves.
delete @blocks{ grep { /Citus|Moving|move|The calls/i } keys %blocks };
is(join(', ', grep { @{ $blocks{$_} } } sort keys %blocks), '', 'no command of the page was left out');

# Checks that doc/routing.md contains each function, except functions whose SQL comment begins with "Internal".
my %comment = map { split /\|/, $_, 2 } split /\n/, $node{control}->safe_psql('fleet', <<~'SQL');
	SELECT proname, left(obj_description(p.oid, 'pg_proc'), 20)
	  FROM pg_proc AS p JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
	 WHERE d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake_routing')
	SQL
cmp_ok(scalar keys %comment, '>', 40, 'the schema has more than 40 functions');
is(join(', ', grep { $comment{$_} !~ /^(?:Internal: |Behind )/ && $page !~ /\b$_\(|`$_`/ } sort keys %comment), '',
	'what is not on the page says that it is internal');

done_testing();
