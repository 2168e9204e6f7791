# Tests a lease server that an ordinary role has created from SQL scripts, without CREATE EXTENSION. Tests concurrent
# requests, a server with a wrong clock, and a lease server without its synchronous standby.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use PostgreSQL::Test::Utils;
use Snowflake::LeaseServer;
use Snowflake::Node;
use Test::More;

my $lease_server = Snowflake::LeaseServer->create('lease_server', allows_streaming => 1);
$lease_server->start;
$lease_server->safe_psql('postgres', 'CREATE ROLE operator LOGIN CREATEROLE; CREATE DATABASE plain OWNER operator');
command_ok([ 'psql', '-Xq', '-U', 'operator', '-d', $lease_server->connstr('plain'), '-f', "$FindBin::RealBin/../snowflake_fleet.sql" ],
	'psql -f, as an ordinary role');
$lease_server->safe_psql('plain', q{
	SELECT snowflake_fleet.create_fleet(lease => '60 s', max_lead => '1 s', max_skew => '5 s');
	SELECT snowflake_fleet.add_server(s) FROM unnest(ARRAY['alpha', 'beta', 'gamma']) AS s}, extra_params => [ '-U', 'operator' ]);
$lease_server->stop;

# Three servers start before the lease server, and repeat their requests until the lease server answers.
my %regions = (alpha => '0,1', beta => '2,3', gamma => '4,5');
my %server = map {
	my $node = Snowflake::Node->create($_, conf => sprintf(<<~'CONF', $regions{$_}, $lease_server->host, $lease_server->port, $_));
		snowflake.leased_regions = '%s'
		snowflake.lease = 60s
		snowflake.max_skew = 5s
		snowflake.max_wait = 60s
		snowflake.lease_conninfo = 'host=''%s'' port=%s dbname=plain user=%s'
		CONF
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');
	$_ => $node
} 'alpha', 'beta', 'gamma';
my %writer = map { $_ => $server{$_}->start_writer('SELECT snowflake.next_id(g % 3) FROM generate_series(1, 1000) g') } keys %server;
$server{$_}->poll_query_until('postgres', q{SELECT last_message LIKE 'could not connect%' FROM snowflake.lease}) or die 'nothing said' foreach keys %server;
$lease_server->start;
my @ids;
foreach my $name (sort keys %server)
{
	my $end = $server{$name}->finish_writer($writer{$name});
	is($end->{errors} . scalar(@{ $end->{ids} }), '1000', "$name mints when the lease server has started");
	push @ids, @{ $end->{ids} };
}
my %seen;
is(scalar(grep { $seen{$_}++ } @ids), 0, 'ids of the three servers are unique');
is(join(' ', sort map { $server{$_}->safe_psql('postgres', 'SELECT region FROM snowflake.lease') } keys %server), '0 2 4', 'the three servers lease three regions');
is($lease_server->safe_psql('plain', q{SELECT string_agg(server, ' ' ORDER BY server) FROM snowflake_fleet.regions WHERE state = 'held'}),
	'alpha beta gamma', 'the lease server shows that the three servers hold regions');

# The lease server must detect a server that starts with a wrong clock.
my $gamma = $server{gamma};
foreach my $case ([ 60, 'the lease server refused to lease: The server\'s clock is \d+ ms ahead' ],
	[ -60, 'refused to lease: this server\'s clock is \d+ ms behind' ])
{
	my ($off, $why) = @$case;
	$gamma->stop;
	$gamma->clock->set($off);
	$gamma->start;
	$gamma->poll_query_until('postgres', q{SELECT last_message LIKE '%refused to lease%' FROM snowflake.lease}) or die 'not refused';
	$gamma->refuses(q{SET snowflake.max_wait = '100ms'; SELECT snowflake.next_id(1)},
		{ sqlstate => '55000', message => 'this server has not leased a region', detail => $why }, "next_id() fails if the clock is wrong by $off s at the server start");
}
$gamma->clock->set(0);
push @ids, $gamma->ids('SELECT snowflake.next_id(g % 3) FROM generate_series(1, 1000) g');
is(scalar(grep { $seen{$_}++ } @ids[ -1000 .. -1 ]), 0, 'ids are unique after the clock was corrected');

# While the synchronous standby of the lease server is missing, the lease server grants no lease.
my $alpha = $server{alpha};
$lease_server->append_conf('postgresql.conf', "synchronous_standby_names = 'nobody'\n");
$lease_server->reload;
$alpha->poll_query_until('postgres', q{SELECT last_message ~ 'did not answer in time|lock timeout' FROM snowflake.lease}) or die 'it is answered';
my $until = $alpha->safe_psql('postgres', 'SELECT until FROM snowflake.lease');
like($alpha->log_content, qr/WARNING:  snowflake: the lease server (?:did not answer in time: stopped waiting|refused: canceling statement due to lock timeout)/, 'the log shows that the lease server did not answer while its standby is missing');
is($alpha->safe_psql('postgres', 'SELECT until FROM snowflake.lease'), $until, 'the lease is not renewed while the standby is missing');
$lease_server->append_conf('postgresql.conf', "synchronous_standby_names = ''\n");
$lease_server->reload;
ok($alpha->poll_query_until('postgres', "SELECT until > '$until' FROM snowflake.lease"), 'the lease is renewed when no standby is required');
like($alpha->log_content, qr/LOG:  snowflake: (?:renewed the lease of|leased) region \d.*\z/s, 'the log shows the renewal');
push @ids, $alpha->ids('SELECT snowflake.next_id(g % 3) FROM generate_series(1, 1000) g');
is(scalar(grep { $seen{$_}++ } @ids[ -1000 .. -1 ]), 0, 'ids are unique after the standby was missing');

done_testing();
