# Tests the start, restart and crash of a server that leases its region. Tests renewed and revoked leases, and the
# errors of next_id() without a lease.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use PostgreSQL::Test::Utils;
use Snowflake::LeaseServer;
use Snowflake::Ledger;
use Snowflake::Node;
use Test::More;

my $lease_server = Snowflake::LeaseServer->create('lease_server');
$lease_server->start;
$lease_server->install;
$lease_server->safe_psql('postgres', q{
	SELECT snowflake_fleet.create_fleet(lease => '10 s', max_lead => '1 s', max_skew => '3 s');
	SELECT snowflake_fleet.add_server('alpha')});
my $conninfo = sprintf q{host=''%s'' port=%s dbname=postgres user=alpha}, $lease_server->host, $lease_server->port;
my $settings = "snowflake.lease_conninfo = '$conninfo'\nsnowflake.leased_regions = '0-3'\nsnowflake.lease = 10s\nsnowflake.max_skew = 3s\n";
my $ledger = Snowflake::Ledger->new;

my $server = Snowflake::Node->create('server', allows_streaming => 1, conf => "restart_after_crash = on\nsnowflake.max_wait = 20s\n$settings");
$server->start;
$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');

sub mint
{
	my ($node, $count) = @_;
	my @ids = $node->ids('SELECT snowflake.next_id(g % 40) FROM generate_series(1, ' . ($count // 400) . ') g');
	$ledger->record($ledger->anonymous, @ids);
	return @ids;
}
sub region_of { return $_[0]->safe_psql('postgres', "SELECT snowflake.region_of($_[1])"); }

my @ids = mint($server);
is($server->safe_psql('postgres', 'SELECT d.region = l.region FROM snowflake.databases AS d, snowflake.lease AS l'), 't', 'the view databases shows the leased region');
is(scalar(@ids), 400, 'a server that leases its region mints');
is(region_of($server, $ids[0]), '0', 'the ids have the granted region');
is($server->safe_psql('postgres', q{SELECT region, until - clock_timestamp() BETWEEN '1 s' AND '11 s', published_until <= until,
	  last_contact BETWEEN clock_timestamp() - interval '10 s' AND clock_timestamp(), abs(clocks_apart_ms) < 1000,
	  incarnation > 0, last_message ~ 'region 0', last_renewal <= last_contact, missed_renewals = 0 FROM snowflake.lease}), '0|t|t|t|t|t|t|t|t', 'the view lease shows the lease');
is($lease_server->safe_psql('postgres', q{SELECT region, server, free FROM snowflake_fleet.regions WHERE state = 'held'}),
	'0|alpha|f', 'the lease server shows the same lease');
is($server->safe_psql('postgres', 'SELECT last_value FROM snowflake.fleet'),
	$lease_server->safe_psql('postgres', 'SELECT id FROM snowflake_fleet.fleet'), 'the database has stored the number of the fleet');

# The server renews its lease before the lease ends, so the server mints without a pause.
my $until = $server->safe_psql('postgres', 'SELECT until FROM snowflake.lease');
$server->poll_query_until('postgres', "SELECT until > '$until' FROM snowflake.lease") or die 'not renewed';
mint($server);
pass('the server mints after its lease was renewed');

# After a crash restart the server continues with the lease that it had, without a request to the lease server.
my $pid = $server->safe_psql('postgres', 'SELECT pg_backend_pid()');
my $holder = $server->session;
my $incarnation = $server->safe_psql('postgres', 'SELECT incarnation FROM snowflake.lease');
$lease_server->stop;
$server->kill_backend($holder->query_safe('SELECT pg_backend_pid()'));
@ids = mint($server);
is(region_of($server, $ids[0]), '0', 'after a crash restart the server mints in its region, although the lease server is down');
is($server->safe_psql('postgres', 'SELECT incarnation FROM snowflake.lease'), $incarnation, 'after a crash restart the server is the same incarnation');
like($server->log_content, qr/WARNING:  snowflake: could not connect to the lease server/, 'the log shows that the lease server cannot be reached');
eval { $holder->quit };

# If the server's lease has ended, next_id() waits for a new lease, and fails after "snowflake.max_wait".
$server->poll_query_until('postgres', 'SELECT until < clock_timestamp() FROM snowflake.lease') or die 'no end';
$server->refuses('SET snowflake.max_wait = 300; SELECT snowflake.next_id(5)', {
	sqlstate => '55000', message => 'the lease of region 0 has ended',
	detail => 'The lease covers ids before .*\. The next id has the time .*\. The clock shows .*could not connect',
	hint => 'check the lease server in "snowflake.lease_conninfo"' }, 'next_id() fails if the lease has ended');
$server->refuses('SELECT snowflake.observe(snowflake.make_id(clock_timestamp(), 5, 0))', {
	sqlstate => '55000', message => 'the time of the id is after the end of this server\'s lease', detail => 'The call requires ids with a time after .*\. The lease of region 0 ends at',
	hint => 'Repeat the call' }, 'observe() fails if the id is beyond the lease');
my $waiting = $server->start_writer('SELECT snowflake.next_id(5)');
$lease_server->start;
my $end = $server->finish_writer($waiting);
is($end->{errors}, '', 'a waiting call gets its id when the lease server is back');
$ledger->record($waiting->{name}, @{ $end->{ids} });
$ledger->check(1_000, 'ids are unique over a crash restart and a lease that ended');

# A server that stops cleanly gives its region back to the lease server.
$server->restart;
like($server->log_content, qr/LOG:  snowflake: gave region 0 back/, 'the log shows that a clean stop returned the region');
$ledger->new_server_run;
@ids = mint($server);
my $second = region_of($server, $ids[0]);
is($lease_server->safe_psql('postgres', q{SELECT count(*) FROM snowflake_fleet.regions WHERE state = 'held'}), '1', 'after a restart the lease server shows one held region');
# After an immediate stop the region is still leased, so the restarted server leases another region.
$server->stop('immediate');
$server->start;
$ledger->new_server_run;
@ids = mint($server);
isnt(region_of($server, $ids[0]), $second, 'after an immediate stop the server mints in another region');

# If an operator revokes the lease of a server, the server continues with another region.
my $held = $server->safe_psql('postgres', 'SELECT region FROM snowflake.lease');
my $session = $server->session;
$session->query_safe('SELECT snowflake.next_id(1)');
my $settled = $server->safe_psql('postgres', 'SELECT snowflake.settled_before()');
$lease_server->safe_psql('postgres', "SELECT snowflake_fleet.revoke_lease($held)");
$server->poll_query_until('postgres', "SELECT region <> $held FROM snowflake.lease") or die 'not revoked';
my ($id) = split /\n/, $session->query_safe('SELECT snowflake.next_id(1)');
isnt(region_of($server, $id), $held, 'after the lease was revoked, an open session mints in another region');
cmp_ok($id, '>=', $settled, 'ids of the new region are above the earlier result of settled_before()');
cmp_ok($server->safe_psql('postgres', 'SELECT snowflake.settled_before()'), '>=', $settled, 'settled_before() does not decrease with the new region');
like($server->log_content, qr/WARNING:  snowflake: lost region $held: The lease was revoked/, 'the log shows that the region was lost because the lease was revoked');
$session->quit;

$ledger->check(1_800, 'ids are unique over a restart, an immediate stop and a revoked lease');

# If a server was copied, and the copy and the original server run at the same time, the copy leases another region.
$server->safe_psql('postgres', 'CHECKPOINT');
$server->backup('copy');
my $copy = Snowflake::Node->create_from_backup('copy', $server, 'copy');
$copy->start;
my @original = mint($server, 3000);
my @copied = mint($copy, 3000);
isnt(region_of($server, $original[-1]), region_of($copy, $copied[-1]), 'the copy mints in another region than the original');
my %seen;
is(scalar(grep { $seen{$_}++ } @original, @copied), 0, 'ids of the original and the copy are unique');
is($copy->safe_psql('postgres', 'SELECT minting, reason, cloned FROM snowflake.health()'), 't||f', 'health() does not show the copy as a clone');

# A copy of a server that starts without "snowflake.leased_regions" refuses to mint.
$copy->stop;
my $conf = $copy->data_dir . '/postgresql.conf';
append_to_file($conf, "snowflake.leased_regions = ''\nsnowflake.lease_conninfo = ''\nsnowflake.region = 0\n");
$copy->start;
$copy->refuses('SELECT snowflake.next_id(5)', { sqlstate => '55000',
	message => 'minted its ids under leases, but this server leases no region',
	detail => 'Sequence snowflake.fleet contains \d+', hint => 'Set "snowflake.leased_regions"' }, 'next_id() fails on a copy that leases no region');
is($copy->safe_psql('postgres', 'SELECT minting, reason FROM snowflake.health'), 'f|ids were minted under leases, but this server leases no region', 'health shows that the copy leases no region');
is($copy->safe_psql('postgres', 'SELECT count(*) FROM snowflake.lease'), '0', 'the view lease is empty on the copy');
$copy->safe_psql('postgres', q{SELECT setval('snowflake.fleet', 0, false)});
is(scalar(mint($copy, 3)), 3, 'the copy mints after an operator has removed the number of the fleet');
is($copy->safe_psql('postgres', 'SELECT cloned FROM snowflake.health()'), 'f', 'health() does not show the copy as a clone after it has minted');

done_testing();
