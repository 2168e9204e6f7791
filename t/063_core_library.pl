# Runs the commands of doc/core.md, which install the C++ library and build an example program that mints ids.

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

# Tests "make install-core" with and without DESTDIR.
like($install, qr/^sudo make install-core$/, 'the page has the command make install-core');
my $make = "make -s -C $root PG_CONFIG='${\($ENV{PG_CONFIG} // 'pg_config')}' prefix=$work/usr";
runs("$make DESTDIR=$work/stage install-core", 'make install-core with DESTDIR succeeds');
ok(!-e "$work/usr", 'make install-core with DESTDIR installs nothing outside of it');
runs("$make install-core", 'make install-core succeeds');
is_deeply([ map { s{^\Q$work/stage}{}r } files_below("$work/stage") ], [ files_below("$work/usr") ], 'make install-core installs the same files with and without DESTDIR');
my @headers = glob("$work/usr/include/snowflake/*.hpp");
cmp_ok(scalar @headers, '>=', 12, 'at least twelve headers are installed');
my @include = map { "-include $_" } @headers;
runs("g++ -std=c++20 -fno-exceptions -fno-rtti -Wall -Wextra -Wshadow -Wconversion -Werror -fsyntax-only -x c++ \$(pkg-config --cflags snowflake-core) @include /dev/null",
	'the installed headers compile without other files');
my ($version) = slurp_file("$root/snowflake.control") =~ /^default_version = '(.*)'/m;
is(runs('pkg-config --modversion snowflake-core', 'pkg-config knows snowflake-core'), "$version\n", 'pkg-config shows the version of the extension');

runs($compile =~ s/-O2/-O2 -Wall -Wextra -Werror/r, 'the example is built with the command of the page');
runs("$seal; test -n \"\$seal\"; echo \$seal >seal", 'the seal is read with the command of the page');
my ($number) = slurp_file("$work/seal") =~ /^(-?\d+)$/ or BAIL_OUT('no seal');
runs("seal=$number; $create", 'the example makes a mark file');
is(scalar(my @few = split /\n/, runs("seal=$number; $mint", 'the example mints')), 1000, 'the example mints 1000 ids, as the page says');

# In a second run the example program mints ids above the high-water mark of its first run. The example program decodes
# ids like the database.
my @more = split /\n/, runs("seal=$number; $mint", 'the example mints in a second run');
cmp_ok($more[0], '>', $few[-1], 'the second run mints greater ids');
my ($sample) = $decode =~ /(\d+)$/;
foreach my $id ($sample, $few[-1], 0, 1, 1023, 1024, (1 << 63) - 1)
{
	my $told = $node->safe_psql('postgres',
		"SELECT (extract(epoch FROM created_at) * 1000)::bigint, region, shard, sequence FROM snowflake.decode($id)") =~ tr/|/ /r;
	is(runs("seal=$number; " . $decode =~ s/$sample/$id/r, "the example decodes $id"), "$told\n", "the example decodes $id like the database");
}

# Three example programs and the server mint ids of one shard at the same time, each with its own region number.
$node->safe_psql('postgres', 'CREATE TABLE ids (id bigint PRIMARY KEY DEFAULT snowflake.next_id(7), source text)');
my $in_psql = IPC::Run::start([ 'psql', '-XAtq', '-c', q{INSERT INTO ids (source) SELECT 'server' FROM generate_series(1, 100000)} ],
	'<', \undef, '>', \my $none);
runs("./mint $number $_ mark.$_", "a program makes a mark file for region $_") foreach 1 .. 3;
my @programs = map {
	{ region => $_, run => IPC::Run::start([ './mint', $number, $_, "mark.$_", 7, 100000 ], '<', \undef, '>', "ids.$_") }
} 1 .. 3;
ok($_->{run}->finish, "the program of region $_->{region} mints") foreach @programs;
ok($in_psql->finish, 'the server mints');
$node->safe_psql('postgres', "\\copy ids (id) FROM '$work/ids.$_'") foreach 1 .. 3;
is($node->safe_psql('postgres', 'SELECT snowflake.region_of(id), count(*), min(snowflake.shard_of(id)), max(snowflake.shard_of(id)) FROM ids GROUP BY 1 ORDER BY 1'),
	join("\n", map { "$_|100000|7|7" } 0 .. 3), 'the ids of all four are unique, and each has its region');

foreach ([ 'mark.1', 2, 'was created with another' ], [ 'mark.9', 9, 'does not exist' ])
{
	my ($file, $region, $reason) = @$_;
	my ($status, $out, $err) = run_in_shell("./mint $number $region $file 7 1");
	ok($status >> 8 == 1 && $out eq '' && $err =~ /$reason/, "the program fails because the mark file $reason");
}

foreach ([ 'x', 1 ], [ 0, 1 ], [ $number, -1 ], [ $number, '9223372036854775808' ], [ $number, 32, 'f' ], [ $number, 32, 'f', 0, 1 ], [ $number, 0, 'f', 256, 1 ], [ $number, 0, 'f', 0, '1x' ], [ $number, 0, 'f', 0, '' ])
{
	my ($status, $out, $err) = run_in_shell("./mint " . join ' ', map { "'$_'" } @$_);
	ok($status >> 8 == 2 && $out eq '' && $err ne '', "the program refuses the arguments @$_");
}

runs("$make uninstall-core", 'make uninstall-core succeeds');
is_deeply([ files_below("$work/usr") ], [], 'make uninstall-core removes all files');

done_testing();
