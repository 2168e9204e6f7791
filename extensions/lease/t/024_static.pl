# Servers with a static region report it. Two installations with one configuration are shown on both servers, in health, the
# log and the view, and by the lease server. A restart does not look like a second server. All servers continue to mint.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use Snowflake::Control;
use Snowflake::Node;
use Test::More;

my $control = Snowflake::Control->create('control');
$control->start;
$control->install;
$control->safe_psql('postgres', q{SELECT snowflake_fleet.add_server('alpha'), snowflake_fleet.add_server('beta')});
sub conf { my ($role) = @_; return sprintf "snowflake.lease_conninfo = 'host=''%s'' port=%s dbname=postgres user=$role'\n", $control->host, $control->port; }
my $copied = "snowflake.region = 3\n" . conf('alpha');
sub health { return $_[0]->safe_psql('postgres', 'SELECT minting, reason FROM snowflake.health'); }
sub conflict { return $_[0]->safe_psql('postgres', 'SELECT conflict FROM snowflake.lease'); }

# Alone, and restarted.
my $first = Snowflake::Node->create_running('first', conf => $copied);
$first->poll_query_until('postgres', 'SELECT last_contact IS NOT NULL FROM snowflake.lease') or die 'not reported';
is($first->safe_psql('postgres', 'SELECT region, until IS NULL, length_ms, missed_renewals, conflict, last_message FROM snowflake.lease'),
	'3|t|0|0||reported region 3 to the lease server', 'the view of a static region that is reported');
$first->stop('immediate');
$first->start;
$first->poll_query_until('postgres', 'SELECT last_contact IS NOT NULL FROM snowflake.lease') or die 'not reported';
is(conflict($first), '', 'a restart is no second server');
is(health($first), 't|', 'all is well');

# Two installations with one file.
my $second = Snowflake::Node->create_running('second', conf => $copied);
foreach my $node ($first, $second)
{
	my $name = $node->name;
	ok($node->poll_query_until('postgres', 'SELECT conflict IS NOT NULL FROM snowflake.lease'), "$name: a second server in its region is noticed");
	like(conflict($node), qr/^Region 3 is used by another server as well: alpha \(incarnation \d+, address local\)\.$/, "$name: which");
	is(health($node), 't|another server mints in the same region', "$name: health shows it");
	like($node->log_content, qr/WARNING:  snowflake: another server mints in the same region\n.*DETAIL:  Region 3 is used/, "$name: the log has it");
	is(scalar($node->ids('SELECT snowflake.next_id(1)')), 1, "$name: mints on");
}
is($control->safe_psql('postgres', 'SELECT granting, reason FROM snowflake_fleet.health'), 't|server alpha mints in the region of another server', 'the lease server shows it');
is($control->safe_psql('postgres', q{SELECT count(*) >= 2 FROM snowflake_fleet.regions WHERE region = 3 AND state = 'static'}), 't', 'and both of them');
like($control->log_content, qr/LOG:  snowflake_fleet: server alpha .*: Region 3 is used by another server as well/, 'and its log');

# A server that would lease such a region is refused.
is($control->ask(call => 'acquire', server => 'beta', incarnation => 5, regions => '{3}')->{status}, 'taken', 'nobody leases the region');

# After one of them has stopped, the conflict ends. Without the lease server the other one continues to mint.
$second->stop;
$control->safe_psql('postgres', q{UPDATE snowflake_fleet.static_region SET last_request = last_request - interval '1 minute'});
ok($first->poll_query_until('postgres', 'SELECT conflict IS NULL FROM snowflake.lease'), 'the second one has stopped');
is(health($first), 't|', 'and health is well again');
$control->stop;
$first->restart;
is(scalar($first->ids('SELECT snowflake.next_id(1)')), 1, 'a static server starts and mints without the lease server');

# It changes over to leases, in the same database: its ids ascend.
$control->start;
my ($before) = $first->ids('SELECT snowflake.next_id(1)');
$first->stop;
$first->append_conf('postgresql.conf', "snowflake.region = 0\nsnowflake.leased_regions = '4,5'\nsnowflake.max_wait = 20s\n");
$first->start;
my ($after) = $first->ids('SELECT snowflake.next_id(1)');
cmp_ok($after, '>', $before, 'changed over to leases of other regions');
is($first->safe_psql('postgres', 'SELECT region FROM snowflake.lease'), '4', 'of which it leases one');

# Its clone, which still mints in the static region, is not joined there.
$second->start;
$second->poll_query_until('postgres', 'SELECT last_contact IS NOT NULL FROM snowflake.lease') or die 'not reported';
is($control->ask(call => 'acquire', server => 'alpha', incarnation => 6, regions => '{3}')->{status}, 'taken', 'no lease of a region in which a clone of the same server mints');

done_testing();
