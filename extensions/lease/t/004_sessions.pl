# Tests new sessions of a server that leases its region, short leases, and leases that are revoked while calls wait.
# Tests a host of the lease server that does not answer.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use IO::Socket::INET;
use PostgreSQL::Test::Utils;
use Snowflake::LeaseServer;
use Snowflake::Node;
use Test::More;

my $lease_server = Snowflake::LeaseServer->create('lease_server');
$lease_server->start;
$lease_server->install;
$lease_server->safe_psql('postgres', q{SELECT snowflake_fleet.add_server('alpha')});
my $fleet = sprintf q{host=''%s'' port=%s dbname=postgres user=alpha}, $lease_server->host, $lease_server->port;

# With "snowflake.reserve" of 15 s, the high-water mark can be 15 s ahead of the clock. A new session must mint ids
# without waiting for the clock to reach the high-water mark.
my $server = Snowflake::Node->create('server', conf => "snowflake.leased_regions = '0-3'\nsnowflake.lease_conninfo = '$fleet'\nsnowflake.reserve = 15s\n");
$server->start;
$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');
my @ids = $server->ids('SELECT snowflake.next_id(1)');
push @ids, $server->ids('SET snowflake.max_wait = 0; SELECT snowflake.next_id(1)') foreach 1 .. 5;
is(scalar(@ids), 6, 'new sessions mint without a wait');
is_deeply([ sort { $a <=> $b } @ids ], \@ids, 'ids of new sessions ascend');
is($server->safe_psql('postgres', "SELECT max(created_at) < clock_timestamp() + interval '1 s' FROM snowflake.decode($ids[-1])"),
	't', 'ids of new sessions are not ahead of the clock');
is($server->safe_psql('postgres', 'SELECT minting, reason FROM snowflake.health'), 't|', 'health shows that the database mints');

# If the first host in "snowflake.lease_conninfo" accepts connections but never answers, the server must try the second
# host.
$server->stop;
my $mute = IO::Socket::INET->new(Listen => 50, LocalAddr => '127.0.0.1') or die "listen: $!";
$server->append_conf('postgresql.conf', sprintf q{snowflake.lease_conninfo = 'host=127.0.0.1,%s port=%s,%s dbname=postgres user=alpha target_session_attrs=read-write'} . "\n",
	$lease_server->host, $mute->sockport, $lease_server->port);
$server->start;
ok($server->poll_query_until('postgres', 'SELECT region IS NOT NULL FROM snowflake.lease'), 'the server gets a region although the first host does not answer')
  or diag $server->safe_psql('postgres', 'SELECT last_message FROM snowflake.lease');
is(scalar($server->ids(q{SET snowflake.max_wait = '20s'; SELECT snowflake.next_id(1)})), 1, 'the server mints although the first host does not answer');    # ids begin at the mark

$server->stop;
$lease_server->safe_psql('postgres', 'CREATE DATABASE short');
$lease_server->install('short');
$lease_server->safe_psql('short', q{SELECT snowflake_fleet.create_fleet(lease => '2 s', max_lead => '0', max_skew => '500 ms'), snowflake_fleet.add_server('alpha')});
$server->append_conf('postgresql.conf', sprintf "snowflake.lease_conninfo = 'host=%s port=%s dbname=short user=alpha'\n", $lease_server->host, $lease_server->port);
$server->start;
$server->safe_psql('postgres', q{SELECT setval('snowflake.fleet', 0, false)});
$server->poll_query_until('postgres', 'SELECT region IS NOT NULL FROM snowflake.lease') or die 'no region';
# The lease server grants leases of 2 s, although the server requests 6 s. On a busy machine a few renewals of the lease
# may be late.
my $renewals = $server->safe_psql('postgres', <<'SQL');
DO $$
DECLARE seen timestamptz := until FROM snowflake.lease; now_until timestamptz; in_force int := 0; late int := 0;
BEGIN
  FOR i IN 1 .. 3600 LOOP
    SELECT until INTO now_until FROM snowflake.lease;
    IF seen > clock_timestamp() AND now_until <> seen THEN
      in_force := in_force + 1;
    ELSIF now_until IS DISTINCT FROM seen THEN
      late := late + 1;
    END IF;
    EXIT WHEN in_force = 12;
    seen := now_until;
    PERFORM pg_sleep(0.05);
  END LOOP;
  PERFORM set_config('test.renewals', format('%s, late: %s', in_force, late), false);
END
$$;
SELECT current_setting('test.renewals');
SQL
my ($in_force, $late) = $renewals =~ /^(\d+), late: (\d+)$/;
is($in_force, 12, 'a lease that is shorter than the server requested is renewed twelve times before it ends') or diag $renewals;
cmp_ok($late, '<', $in_force, 'fewer renewals are late than in time');

# Revokes the lease of a server while next_id(shard, after) waits for the time of the id "after".
$server->reconfigure('snowflake.max_lead' => "'30s'");
foreach my $region (0, 1)
{
	$lease_server->safe_psql('short', "SELECT snowflake_fleet.revoke_lease($region)");
	$server->poll_query_until('postgres', "SELECT region > $region FROM snowflake.lease") or die 'not revoked';
}
$lease_server->safe_psql('short', 'BEGIN; UPDATE snowflake_fleet.region SET until_ms = 8000000000000 WHERE region > 2; SELECT snowflake_fleet.sign_rows(); COMMIT');
$lease_server->poll_query_until('short', 'SELECT free FROM snowflake_fleet.regions WHERE region = 0') or die 'not free';
my $after = $server->safe_psql('postgres', q{SELECT snowflake.make_id(clock_timestamp() + interval '12 s', 5, 0, 1)});
my @waiting = map { $server->start_writer("SET snowflake.max_wait = '30s'; SELECT $_") } "snowflake.next_id(5, $after)", "unnest(snowflake.next_ids(6, 2, $after))";
$server->poll_query_until('postgres', q{SELECT count(*) = 2 FROM pg_stat_activity WHERE application_name = 'writer' AND wait_event_type = 'Extension'})
  or die 'nobody waits';
$lease_server->safe_psql('short', 'SELECT snowflake_fleet.revoke_lease(2)');
$server->poll_query_until('postgres', 'SELECT region < 2 FROM snowflake.lease') or die 'not revoked';
foreach my $writer (@waiting)
{
	my $end = $server->finish_writer($writer);
	is($end->{errors}, '', 'a call with the argument "after" succeeds although the region was lost');
	ok(@{ $end->{ids} } != 0 && !(grep { $_ <= $after } @{ $end->{ids} }), 'the ids are greater than the argument "after" although the region was lost') or diag "@{ $end->{ids} } after $after";
}

# The lease server refuses requests, because the clock of the requesting server is wrong. Repeated requests of a server
# must write only one line to its log.
$server->clock->set(3);
my $since = -s $server->logfile;
$server->psql('postgres', 'SET snowflake.max_wait = 8000; SELECT snowflake.next_id(1)');
my @lines = slurp_file($server->logfile, $since) =~ /WARNING:  snowflake: (?:refused|the lease server refused)/g;
cmp_ok(scalar(@lines), '==', 1, 'repeated refusals of the lease server are one line in the log');
$server->clock->set(0);

done_testing();
