# Tests a server that leases its region: start, renewal, restart, crash, revocation, and the errors without a lease.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Control;
use Snowflake::Ledger;
use Snowflake::Node;
use Test::More;

my $control = Snowflake::Control->create('control');
$control->start;
$control->install;
$control->safe_psql('postgres', q{
	SELECT snowflake_fleet.create_fleet(lease => '10 s', max_lead => '1 s', max_skew => '3 s');
	SELECT snowflake_fleet.add_server('alpha')});
my $conninfo = sprintf q{host=''%s'' port=%s dbname=postgres user=alpha}, $control->host, $control->port;
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

# The first ids, and the lease in the view and on the lease server.
my @ids = mint($server);
is(scalar(@ids), 400, 'it mints');
is(region_of($server, $ids[0]), '0', 'in the region that it was granted');
is($server->safe_psql('postgres', q{SELECT region, until - clock_timestamp() BETWEEN '1 s' AND '11 s', published_until <= until,
	  last_contact BETWEEN clock_timestamp() - interval '10 s' AND clock_timestamp(), abs(clocks_apart_ms) < 1000,
	  incarnation > 0, last_message ~ 'region 0', last_renewal <= last_contact, missed_renewals = 0 FROM snowflake.lease}), '0|t|t|t|t|t|t|t|t', 'the view snowflake.lease');
is($control->safe_psql('postgres', q{SELECT region, server, free FROM snowflake_fleet.regions WHERE state = 'held'}),
	'0|alpha|f', 'the lease server says the same');
is($server->safe_psql('postgres', 'SELECT last_value FROM snowflake.fleet'),
	$control->safe_psql('postgres', 'SELECT id FROM snowflake_fleet.fleet'), 'the database remembers the fleet');

# Renewed: beyond the first lease, without a pause.
my $until = $server->safe_psql('postgres', 'SELECT until FROM snowflake.lease');
$server->poll_query_until('postgres', "SELECT until > '$until' FROM snowflake.lease") or die 'not renewed';
mint($server);
pass('the lease is renewed ahead of time');

# A crash restart continues with the lease that it had, without a request.
my $pid = $server->safe_psql('postgres', 'SELECT pg_backend_pid()');
my $holder = $server->session;
my $incarnation = $server->safe_psql('postgres', 'SELECT incarnation FROM snowflake.lease');
$control->stop;
$server->kill_backend($holder->query_safe('SELECT pg_backend_pid()'));
@ids = mint($server);
is(region_of($server, $ids[0]), '0', 'a crash restart goes on in its region, while the lease server is down');
is($server->safe_psql('postgres', 'SELECT incarnation FROM snowflake.lease'), $incarnation, 'as the same incarnation');
like($server->log_content, qr/WARNING:  snowflake: could not connect to the lease server/, 'the log says what is wrong');
eval { $holder->quit };

# The lease ends: sessions wait, then get an error that names the holder and the end. They continue after the renewal.
$server->poll_query_until('postgres', 'SELECT until < clock_timestamp() FROM snowflake.lease') or die 'no end';
$server->refuses('SET snowflake.max_wait = 300; SELECT snowflake.next_id(5)', {
	sqlstate => '55000', message => 'the lease of region 0 has ended',
	detail => 'It covers ids before .*; the next id is of .*; the clock shows .*could not connect',
	hint => 'Check the lease server that "snowflake.lease_conninfo" names' }, 'minting is refused when the lease has ended');
$server->refuses('SELECT snowflake.observe(snowflake.make_id(clock_timestamp(), 5, 0))', {
	sqlstate => '55000', message => 'the id is beyond the lease', detail => 'The call requires ids after .*; region 0 is leased until',
	hint => 'Observe it again' }, 'observe() beyond the lease is refused');
my $waiting = $server->start_writer('SELECT snowflake.next_id(5)');
$control->start;
my $end = $server->finish_writer($waiting);
is($end->{errors}, '', 'who waits goes on when the lease server is back');
$ledger->record($waiting->{name}, @{ $end->{ids} });
$ledger->check(1_000, 'so far');

# A restart returns the region. The next run gets one at once, and repeats no id.
$server->restart;
like($server->log_content, qr/LOG:  snowflake: gave region 0 back/, 'a stop gives the region back');
$ledger->new_server_run;
@ids = mint($server);
my $second = region_of($server, $ids[0]);
is($control->safe_psql('postgres', q{SELECT count(*) FROM snowflake_fleet.regions WHERE state = 'held'}), '1', 'one region is held');
# After a power loss the old one is still leased: another is taken at once.
$server->stop('immediate');
$server->start;
$ledger->new_server_run;
@ids = mint($server);
isnt(region_of($server, $ids[0]), $second, 'after a power loss, another region at once');

# Revoked: the incarnation ends, and a new one has another region.
my $held = $server->safe_psql('postgres', 'SELECT region FROM snowflake.lease');
my $session = $server->session;
$session->query_safe('SELECT snowflake.next_id(1)');
my $settled = $server->safe_psql('postgres', 'SELECT snowflake.settled_before()');
$control->safe_psql('postgres', "SELECT snowflake_fleet.revoke_lease($held)");
$server->poll_query_until('postgres', "SELECT region <> $held FROM snowflake.lease") or die 'not revoked';
my ($id) = split /\n/, $session->query_safe('SELECT snowflake.next_id(1)');
isnt(region_of($server, $id), $held, 'a server whose lease is revoked goes on in another region, in sessions that were there');
cmp_ok($id, '>=', $settled, 'above what was settled in the one before');
cmp_ok($server->safe_psql('postgres', 'SELECT snowflake.settled_before()'), '>=', $settled, 'which does not go back');
like($server->log_content, qr/WARNING:  snowflake: lost region $held: The lease was revoked/, 'and the log says so');
$session->quit;

$ledger->check(1_800, 'a restart, a power loss, a lease revoked');

# A copy that runs next to its original has another region.
$server->safe_psql('postgres', 'CHECKPOINT');
$server->backup('copy');
my $copy = Snowflake::Node->create_from_backup('copy', $server, 'copy');
$copy->start;
my @original = mint($server, 3000);
my @copied = mint($copy, 3000);
isnt(region_of($server, $original[-1]), region_of($copy, $copied[-1]), 'a clone mints in another region');
my %seen;
is(scalar(grep { $seen{$_}++ } @original, @copied), 0, 'no id twice');
is($copy->safe_psql('postgres', 'SELECT minting, reason, cloned FROM snowflake.health()'), 't||f', 'so that a copy has nothing to be accepted for');

# A copy that starts without the setting refuses to mint.
$copy->stop;
my $conf = $copy->data_dir . '/postgresql.conf';
append_to_file($conf, "snowflake.leased_regions = ''\nsnowflake.lease_conninfo = ''\nsnowflake.region = 0\n");
$copy->start;
$copy->refuses('SELECT snowflake.next_id(5)', { sqlstate => '55000',
	message => 'were minted under leases, and this server leases no region',
	detail => 'Sequence snowflake.fleet has fleet \d+', hint => 'Set "snowflake.leased_regions"' }, 'the regime is remembered');
is($copy->safe_psql('postgres', 'SELECT minting, reason FROM snowflake.health'), 'f|minted under leases, and this server leases no region', 'health says why');
is($copy->safe_psql('postgres', 'SELECT count(*) FROM snowflake.lease'), '0', 'nothing in the view');
$copy->safe_psql('postgres', q{SELECT setval('snowflake.fleet', 0, false)});
is(scalar(mint($copy, 3)), 3, 'until an operator has said that it left the fleet');
is($copy->safe_psql('postgres', 'SELECT cloned FROM snowflake.health()'), 'f', 'it remembers that it minted here');

done_testing();
