# Applications while a shard moves: the examples in three languages, which cache the map by its version, and clients of a
# router with PL/Proxy and with postgres_fdw. The servers listen on loopback, because JDBC has no unix sockets. The
# environment variable SNOWFLAKE_MOVES is the number of moves, 1 if it is not set.

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

my $fleet = Snowflake::Fleet->new({ a => [ 0 .. 2 ], b => [ 3 .. 5 ] }, routers => ['c'], conf => "listen_addresses = '127.0.0.1'\n");
my $mover = Snowflake::Mover->new($fleet);
$fleet->control("SELECT snowflake_fleet.set_server('$_', 'host=127.0.0.1 port=" . $fleet->node($_)->port . " dbname=postgres')") foreach 'a', 'b', 'c';
$fleet->push_map('a', 'b', 'c');
$_->append_conf('pg_hba.conf', 'host all all 127.0.0.1/32 trust'), $_->reload foreach map { $fleet->node($_) } 'control', 'a', 'b', 'c';
$_->safe_psql('postgres', <<~'SQL') foreach $fleet->nodes;
	CREATE FUNCTION sign_up(near bigint, name text) RETURNS bigint LANGUAGE plpgsql AS $$
	DECLARE id bigint;
	BEGIN
	  EXECUTE format('INSERT INTO %I.users (name) VALUES ($1) RETURNING id', snowflake.schema_of(near)) INTO id USING name;
	  RETURN id;
	END $$;
	SQL
$fleet->node('c')->safe_psql('postgres', <<~'SQL');
	CREATE EXTENSION plproxy; CREATE EXTENSION postgres_fdw;
	CALL snowflake_fleet.use_plproxy();
	CREATE FUNCTION sign_up(near bigint, name text) RETURNS bigint LANGUAGE plproxy AS
	  $$ CLUSTER 'snowflake'; RUN ON snowflake_fleet.run_on(near); $$;
	CREATE TABLE users (id bigint NOT NULL DEFAULT snowflake.next_id(0), name text) PARTITION BY HASH (id snowflake.by_shard);
	CALL snowflake_fleet.use_postgres_fdw('users');
	SQL

my $examples = "$FindBin::RealBin/../examples";
my $router = 'host=127.0.0.1 port=' . $fleet->node('c')->port . ' dbname=postgres';
my ($moves, $each) = ($ENV{SNOWFLAKE_MOVES} // 1, 600 * ($ENV{SNOWFLAKE_MOVES} // 1));
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
	java => [ 'java', "-Duser.name=$user", '-cp', "$driver:$work", 'Router', $url ],
	plproxy => [ '/usr/bin/python3', "$FindBin::RealBin/lib/client.py", $router, 'plproxy', 'SELECT sign_up(snowflake.next_id(%s), %s)' ],
	fdw => [ '/usr/bin/python3', "$FindBin::RealBin/lib/client.py", $router, 'fdw', 'INSERT INTO users (id, name) VALUES (snowflake.next_id(%s), %s) RETURNING id' ]);
my %run;
foreach my $language (sort keys %command)
{
	my $client = { out => '', err => '' };
	$client->{run} = IPC::Run::start([ @{ $command{$language} }, 1, $each ], '<', \undef, '>', \$client->{out}, '2>', \$client->{err}, IPC::Run::timeout(1800));
	$run{$language} = $client;
}
foreach my $client (values %run) { $client->{run}->pump until $client->{out} =~ / 20\n/ || !$client->{run}->pumpable; }
my ($from, $to) = ('a', 'b');
foreach my $move (1 .. $moves)
{
	my $moved = $mover->run('--shard' => 1, '--to' => $to);
	is($moved->{status}, 0, "move $move: the shard is on $to") or diag($moved->{output});
	($from, $to) = ($to, $from);
}
foreach my $language (sort keys %run)
{
	$run{$language}{run}->finish;
	is($run{$language}{err}, '', "$language: no error");
	my @lines = split /\n/, $run{$language}{out};
	is(scalar(@lines), $each, "$language: all were signed up, and found by their ids");
	my %expected = map { split / /, $_, 2 } @lines;
	my %there = map { split /\|/ } split /\n/, $fleet->node($from)->safe_psql('postgres', "SELECT id, name FROM shard_1.users WHERE name LIKE '$language %'");
	is_deeply(\%there, \%expected, "$language: they are where the map says, none lost, none twice");
}
is($fleet->node($from)->safe_psql('postgres', 'SELECT count(*) > 0 FROM shard_1.users WHERE snowflake.region_of(id) = 3'), 't', 'some were minted after the move');

done_testing();
