# The examples: applications that cache the map by its version, in three languages, while a shard moves. One
# server listens on loopback, for JDBC knows no unix sockets.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use IPC::Run;
use PostgreSQL::Test::Utils;
use Snowflake::Fleet;
use Snowflake::Mover;
use Snowflake::Node;
use Test::More;
use Time::HiRes qw(sleep);

my $fleet = Snowflake::Fleet->new({ a => [ 0 .. 2 ], b => [ 3 .. 5 ] }, conf => "listen_addresses = '127.0.0.1'\n");
my $mover = Snowflake::Mover->new($fleet);
$fleet->control("SELECT snowflake_fleet.set_server('$_', 'host=127.0.0.1 port=" . $fleet->node($_)->port . " dbname=postgres')") foreach 'a', 'b';
$fleet->push_map('a', 'b');
$_->append_conf('pg_hba.conf', 'host all all 127.0.0.1/32 trust'), $_->reload foreach map { $fleet->node($_) } 'control', 'a', 'b';

my $examples = "$FindBin::RealBin/../examples";
my $work = $fleet->node('control')->basedir;
my $user = $fleet->control('SELECT current_user');
my $control = 'host=127.0.0.1 port=' . $fleet->node('control')->port . ' dbname=postgres';
(my $url = $control) =~ s{host=(\S+) port=(\d+) dbname=(\S+)}{jdbc:postgresql://$1:$2/$3?user=$user};
local $ENV{PGUSER} = $user;
my $driver = '/usr/share/java/postgresql.jar';
command_ok([ 'javac', '-d', $work, "$examples/Router.java" ], 'the Java example compiles');
my %command = (
	python => [ '/usr/bin/python3', "$examples/router.py", $control ],
	node => [ '/usr/bin/node', "$examples/router.js", $control ],
	java => [ 'java', "-Duser.name=$user", '-cp', "$driver:$work", 'Router', $url ]);
my %run;
foreach my $language (sort keys %command)
{
	my $client = { out => '', err => '' };
	$client->{run} = IPC::Run::start([ @{ $command{$language} }, 1, 600 ], '<', \undef, '>', \$client->{out}, '2>', \$client->{err}, IPC::Run::timeout(900));
	$run{$language} = $client;
}
foreach my $client (values %run) { $client->{run}->pump until $client->{out} =~ / 20\n/ || !$client->{run}->pumpable; }
is($mover->run('--shard' => 1, '--to' => 'b')->{status}, 0, 'the shard moves');
foreach my $language (sort keys %run)
{
	$run{$language}{run}->finish;
	is($run{$language}{err}, '', "$language: no error");
	my @lines = split /\n/, $run{$language}{out};
	is(scalar(@lines), 600, "$language: all were signed up, and found by their ids");
	my %expected = map { split / /, $_, 2 } @lines;
	my %there = map { split /\|/ } split /\n/, $fleet->node('b')->safe_psql('postgres', "SELECT id, name FROM shard_1.users WHERE name LIKE '$language %'");
	is_deeply(\%there, \%expected, "$language: they are where the map says, none lost, none twice");
}
is($fleet->node('b')->safe_psql('postgres', 'SELECT count(*) > 0 FROM shard_1.users WHERE snowflake.region_of(id) = 3'), 't', 'some were minted after the move');

done_testing();
