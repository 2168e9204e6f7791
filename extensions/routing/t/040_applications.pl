# Tests that applications work while a shard is moved to another server. Some applications find the server of a shard by
# the example router, others by PL/Proxy and postgres_fdw. The environment variable SNOWFLAKE_MOVES is the number of
# moves, by default 1. Tests how the example router reads connection strings.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use IO::Socket::INET;
use IPC::Run;
use PostgreSQL::Test::Utils;
use Snowflake::Fleet;
use Snowflake::Mover;
use Snowflake::Node;
use Test::More;
use Time::HiRes qw(sleep);

my $fleet = Snowflake::Fleet->new({ a => [ 0 .. 2 ], b => [ 3 .. 5 ] }, routers => ['c']);
my $mover = Snowflake::Mover->new($fleet);
# The server "c" has no shards, but gets each new version of the shard map.
$fleet->control("SELECT snowflake_fleet.set_server('c', " . Snowflake::Fleet::quote($fleet->conninfo('c')) . ')');
$fleet->push_map('a', 'b', 'c');
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

my ($control, $router) = map { $fleet->conninfo($_) } 'control', 'c';
my @example = ('/usr/bin/python3', "$FindBin::RealBin/../examples/router.py");
my ($moves, $each) = ($ENV{SNOWFLAKE_MOVES} // 1, 600 * ($ENV{SNOWFLAKE_MOVES} // 1));
my %command = (
	python => [ @example, $control ],
	copy => [ @example, $router ],
	plproxy => [ '/usr/bin/python3', "$FindBin::RealBin/lib/client.py", $router, 'plproxy', 'SELECT sign_up(snowflake.next_id(%s), %s)' ],
	fdw => [ '/usr/bin/python3', "$FindBin::RealBin/lib/client.py", $router, 'fdw', 'INSERT INTO users (id, name) VALUES (snowflake.next_id(%s), %s) RETURNING id' ]);
my %run;
foreach my $language (sort keys %command)
{
	my $client = { out => '', err => '' };
	$client->{run} = IPC::Run::start([ @{ $command{$language} }, 1, $each, $command{$language}[1] eq $example[1] ? $language : () ], '<', \undef, '>', \$client->{out}, '2>', \$client->{err}, IPC::Run::timeout(1800));
	$run{$language} = $client;
}
foreach my $client (values %run) { $client->{run}->pump until $client->{out} =~ / 20\n/ || !$client->{run}->pumpable; }
my ($from, $to) = ('a', 'b');
foreach my $move (1 .. $moves)
{
	my $moved = $mover->run('--shard' => 1, '--to' => $to);
	is($moved->{status}, 0, "move $move: the shard is moved to $to") or diag($moved->{output});
	($from, $to) = ($to, $from);
}
foreach my $language (sort keys %run)
{
	$run{$language}{run}->finish;
	is($run{$language}{err}, '', "$language: the application has no error");
	my @lines = split /\n/, $run{$language}{out};
	is(scalar(@lines), $each, "$language: all users were inserted and found by their ids");
	my %expected = map { split / /, $_, 2 } @lines;
	my %there = map { split /\|/ } split /\n/, $fleet->node($from)->safe_psql('postgres', "SELECT id, name FROM shard_1.users WHERE name LIKE '$language %'");
	is_deeply(\%there, \%expected, "$language: each user exists once, on the server of the map");
}
is($fleet->node($from)->safe_psql('postgres', 'SELECT count(*) > 0 FROM shard_1.users WHERE snowflake.region_of(id) = 3'), 't', 'some users were inserted after the move');

# If the connection string has no time limits, the example router must use its own limits.
sub result_with
{
	my ($conninfo) = @_;
	$fleet->control("SELECT snowflake_fleet.set_server('a', " . Snowflake::Fleet::quote($conninfo) . ')');
	my ($out, $err) = ('', '');
	IPC::Run::run([ @example, $control, 0, 2 ], '<', \undef, '>', \$out, '2>', \$err, IPC::Run::timeout(600));
	return $out =~ /\A\d+ python 0\n\d+ python 1\n\z/ && $err eq '' ? 'well' : $err;
}
my $conninfo = $fleet->conninfo('a');
is(result_with("$conninfo application_name='an app' connect_timeout=7"), 'well', 'the router accepts a connection string with options');
like(result_with("$conninfo options='-c default_transaction_read_only=on'"), qr/read-only/, 'the router passes options for the session');
my $silent = IO::Socket::INET->new(Listen => 20, LocalAddr => '127.0.0.1') or die $!;
like(result_with('host=127.0.0.1 port=' . $silent->sockport . ' dbname=x connect_timeout=2'), qr/timeout/, 'the router fails with a timeout if a server does not answer');

done_testing();
