# Tests servers with a static region (set by "snowflake.region"), which report their region to the lease server. If two
# servers use the same static region, both servers and the lease server must show the conflict.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use Snowflake::LeaseServer;
use Snowflake::Node;
use Test::More;

my $lease_server = Snowflake::LeaseServer->create('lease_server');
$lease_server->start;
$lease_server->install;
$lease_server->safe_psql('postgres', q{SELECT snowflake_fleet.add_server('alpha'), snowflake_fleet.add_server('beta')});
sub conf { my ($role) = @_; return sprintf "snowflake.lease_conninfo = 'host=''%s'' port=%s dbname=postgres user=$role'\n", $lease_server->host, $lease_server->port; }
my $copied = "snowflake.region = 3\n" . conf('alpha');
sub health { return $_[0]->safe_psql('postgres', 'SELECT minting, reason FROM snowflake.health'); }
sub conflict { return $_[0]->safe_psql('postgres', 'SELECT conflict FROM snowflake.lease'); }

my $first = Snowflake::Node->create_running('first', conf => $copied);
$first->poll_query_until('postgres', 'SELECT last_contact IS NOT NULL FROM snowflake.lease') or die 'not reported';
is($first->safe_psql('postgres', 'SELECT region, until IS NULL, length_ms, missed_renewals, conflict, last_message FROM snowflake.lease'),
	'3|t|0|0||reported region 3 to the lease server', 'the view lease shows the static region and the report');
$first->stop('immediate');
$first->start;
$first->poll_query_until('postgres', 'SELECT last_contact IS NOT NULL FROM snowflake.lease') or die 'not reported';
is(conflict($first), '', 'after a restart the view lease shows no conflict');
is(health($first), 't|', 'after a restart health shows no conflict');

# The second server has a copy of the first server's configuration file, and so the same static region.
my $second = Snowflake::Node->create_running('second', conf => $copied);
foreach my $node ($first, $second)
{
	my $name = $node->name;
	ok($node->poll_query_until('postgres', 'SELECT conflict IS NOT NULL FROM snowflake.lease'), "$name: the view lease shows a conflict");
	like(conflict($node), qr/^Region 3 is used by another server as well: alpha \(incarnation \d+, address local\)\.$/, "$name: the conflict names the other server");
	is(health($node), 't|another server mints in the same region', "$name: health shows that another server mints in the same region");
	like($node->log_content, qr/WARNING:  snowflake: another server mints in the same region\n.*DETAIL:  Region 3 is used/, "$name: the log shows that another server mints in the same region");
	is(scalar($node->ids('SELECT snowflake.next_id(1)')), 1, "$name: the server still mints");
}
is($lease_server->safe_psql('postgres', 'SELECT granting, reason FROM snowflake_fleet.health'), 't|server alpha mints in the region of another server', 'health of the lease server shows the conflict');
is($lease_server->safe_psql('postgres', q{SELECT count(*) >= 2 FROM snowflake_fleet.regions WHERE region = 3 AND state = 'static'}), 't', 'the view regions of the lease server shows both servers');
like($lease_server->log_content, qr/LOG:  snowflake_fleet: server alpha .*: Region 3 is used by another server as well/, 'the log of the lease server shows the conflict');

is($lease_server->ask(call => 'acquire', server => 'beta', incarnation => 5, regions => '{3}')->{status}, 'taken', 'a request for a static region gets the status taken');

# After one of two servers with the same region has stopped, no view may show the conflict. A server with a static
# region mints even without the lease server.
$second->stop;
$lease_server->safe_psql('postgres', q{UPDATE snowflake_fleet.static_region SET last_request = last_request - interval '1 minute'});
ok($first->poll_query_until('postgres', 'SELECT conflict IS NULL FROM snowflake.lease'), 'the view lease shows no conflict after the second server was stopped');
is(health($first), 't|', 'health shows no conflict after the second server was stopped');
$lease_server->stop;
$first->restart;
is(scalar($first->ids('SELECT snowflake.next_id(1)')), 1, 'a static server starts and mints without the lease server');

# Changes a server from "snowflake.region" to "snowflake.leased_regions".
$lease_server->start;
my ($before) = $first->ids('SELECT snowflake.next_id(1)');
$first->stop;
$first->append_conf('postgresql.conf', "snowflake.region = 0\nsnowflake.leased_regions = '4,5'\nsnowflake.max_wait = 20s\n");
$first->start;
my ($after) = $first->ids('SELECT snowflake.next_id(1)');
cmp_ok($after, '>', $before, 'ids ascend over the change to leased regions');
is($first->safe_psql('postgres', 'SELECT region FROM snowflake.lease'), '4', 'after the change the server leases a region');

# The lease server must not lease the static region of the second server.
$second->start;
$second->poll_query_until('postgres', 'SELECT last_contact IS NOT NULL FROM snowflake.lease') or die 'not reported';
is($lease_server->ask(call => 'acquire', server => 'alpha', incarnation => 6, regions => '{3}')->{status}, 'taken', 'a request for the static region of the server\'s clone gets the status taken');

done_testing();
