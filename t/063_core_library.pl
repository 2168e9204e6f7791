# Tests doc/core.md: the core is installed, the example is built as the page shows, and mints next to a database.

use strict;
use warnings FATAL => 'all';

use File::Find qw(find);
use FindBin;
use lib "$FindBin::RealBin/lib";
use IPC::Run;
use PostgreSQL::Test::Utils qw(slurp_file);
use Snowflake::Node;
use Test::More;

my $root = "$FindBin::RealBin/..";
my ($commands) = slurp_file("$root/doc/core.md") =~ /^```sh\n(.*?)^```$/ms;
my ($install, $compile, $seal, $create, $mint, $decode) = map { s{\bdoc/}{$root/doc/}r } split /\n/, $commands;

my $node = Snowflake::Node->create_running('main');
my $work = $node->basedir;
chdir $work or die $!;
local %ENV = (%ENV, PGHOST => $node->host, PGPORT => $node->port, PGDATABASE => 'postgres', PKG_CONFIG_PATH => "$work/usr/share/pkgconfig");
delete @ENV{qw(MAKEFLAGS MFLAGS MAKELEVEL)};

sub run_in_shell
{
	my ($command) = @_;
	my ($out, $err) = ('', '');
	IPC::Run::run([ 'bash', '-euc', "sudo() { \"\$@\"; }; $command" ], '<', \undef, '>', \$out, '2>', \$err);
	return ($?, $out, $err);
}

sub runs
{
	my ($command, $what) = @_;
	my ($status, $out, $err) = run_in_shell($command);
	is($status, 0, $what) or diag("$command\n$out$err");
	return $out;
}

sub files_below
{
	my ($directory) = @_;
	my @files;
	find({ no_chdir => 1, wanted => sub { push @files, $_ if -f } }, $directory) if -d $directory;
	return sort @files;
}

# Installed below another root, then where it is used.
like($install, qr/^sudo make install-core$/, 'the page installs');
my $make = "make -s -C $root PG_CONFIG='${\($ENV{PG_CONFIG} // 'pg_config')}' prefix=$work/usr";
runs("$make DESTDIR=$work/stage install-core", 'install-core below DESTDIR');
ok(!-e "$work/usr", '... and nowhere else');
runs("$make install-core", 'install-core');
is_deeply([ map { s{^\Q$work/stage}{}r } files_below("$work/stage") ], [ files_below("$work/usr") ], '... the same files');
my @headers = glob("$work/usr/include/snowflake/*.hpp");
cmp_ok(scalar @headers, '>=', 12, 'headers');
my @include = map { "-include $_" } @headers;
runs("g++ -std=c++20 -fno-exceptions -fno-rtti -Wall -Wextra -Wshadow -Wconversion -Werror -fsyntax-only -x c++ \$(pkg-config --cflags snowflake-core) @include /dev/null",
	'... need nothing else');
my ($version) = slurp_file("$root/snowflake.control") =~ /^default_version = '(.*)'/m;
is(runs('pkg-config --modversion snowflake-core', 'its version'), "$version\n", '... is the extension\'s');

runs($compile =~ s/-O2/-O2 -Wall -Wextra -Werror/r, 'the example is built as the page says');
runs("$seal; test -n \"\$seal\"; echo \$seal >seal", 'the seal is read as the page says');
my ($number) = slurp_file("$work/seal") =~ /^(-?\d+)$/ or BAIL_OUT('no seal');
runs("seal=$number; $create", 'it makes a mark file');
is(scalar(my @few = split /\n/, runs("seal=$number; $mint", 'it mints')), 1000, 'as many as the page says');

# It begins at its mark again, and decodes ids like the database.
my @more = split /\n/, runs("seal=$number; $mint", 'it mints again');
cmp_ok($more[0], '>', $few[-1], '... greater ids');
my ($sample) = $decode =~ /(\d+)$/;
foreach my $id ($sample, $few[-1], 0, 1, 1023, 1024, (1 << 63) - 1)
{
	my $told = $node->safe_psql('postgres',
		"SELECT (extract(epoch FROM created_at) * 1000)::bigint, region, shard, sequence FROM snowflake.decode($id)") =~ tr/|/ /r;
	is(runs("seal=$number; " . $decode =~ s/$sample/$id/r, "decodes $id"), "$told\n", '... as the database does');
}

# Three programs in regions of their own, and the server in its region, all in one shard and at the same time.
$node->safe_psql('postgres', 'CREATE TABLE ids (id bigint PRIMARY KEY DEFAULT snowflake.next_id(7), source text)');
my $in_psql = IPC::Run::start([ 'psql', '-XAtq', '-c', q{INSERT INTO ids (source) SELECT 'server' FROM generate_series(1, 100000)} ],
	'<', \undef, '>', \my $none);
runs("./mint $number $_ mark.$_", "a mark file for region $_") foreach 1 .. 3;
my @programs = map {
	{ region => $_, run => IPC::Run::start([ './mint', $number, $_, "mark.$_", 7, 100000 ], '<', \undef, '>', "ids.$_") }
} 1 .. 3;
ok($_->{run}->finish, "region $_->{region} mints") foreach @programs;
ok($in_psql->finish, 'the server mints');
$node->safe_psql('postgres', "\\copy ids (id) FROM '$work/ids.$_'") foreach 1 .. 3;
is($node->safe_psql('postgres', 'SELECT snowflake.region_of(id), count(*), min(snowflake.shard_of(id)), max(snowflake.shard_of(id)) FROM ids GROUP BY 1 ORDER BY 1'),
	join("\n", map { "$_|100000|7|7" } 0 .. 3), 'no id twice, each in its region');

# A refusal ends the program and shows the reason.
foreach ([ 'mark.1', 2, 'belongs to another' ], [ 'mark.9', 9, 'does not exist' ])
{
	my ($file, $region, $reason) = @$_;
	my ($status, $out, $err) = run_in_shell("./mint $number $region $file 7 1");
	ok($status >> 8 == 1 && $out eq '' && $err =~ /$reason/, "refused: $reason");
}

# Invalid arguments are errors.
foreach ([ 'x', 1 ], [ 0, 1 ], [ $number, -1 ], [ $number, '9223372036854775808' ], [ $number, 32, 'f' ], [ $number, 32, 'f', 0, 1 ], [ $number, 0, 'f', 256, 1 ], [ $number, 0, 'f', 0, '1x' ], [ $number, 0, 'f', 0, '' ])
{
	my ($status, $out, $err) = run_in_shell("./mint " . join ' ', map { "'$_'" } @$_);
	ok($status >> 8 == 2 && $out eq '' && $err ne '', "refused: @$_");
}

runs("$make uninstall-core", 'uninstall-core');
is_deeply([ files_below("$work/usr") ], [], '... leaves nothing');

done_testing();
