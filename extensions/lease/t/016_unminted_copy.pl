# Tests that a copy of a server with leases does not mint ids if "snowflake.leased_regions" is removed. Neither the copy
# nor the original has minted an id.

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
$lease_server->safe_psql('postgres', "SELECT snowflake_fleet.add_server('alpha')");
my $fleet = sprintf q{snowflake.lease_conninfo = 'host=''%s'' port=%s dbname=postgres user=alpha'}, $lease_server->host, $lease_server->port;
my $server = Snowflake::Node->create('server', allows_streaming => 1, conf => "snowflake.leased_regions = '0-3'\n$fleet\n");

# Creates one database before the lease server answers, and another database afterwards.
$lease_server->stop;
$server->start;
$server->create_database('early');
is($server->safe_psql('early', 'SELECT last_value FROM snowflake.fleet'), '1152921504606846976', 'CREATE EXTENSION stores that the fleet is not known yet');
$lease_server->start;
$server->poll_query_until('early', 'SELECT fleet IS NOT NULL FROM snowflake.lease') or die 'no fleet';
my $number = $lease_server->safe_psql('postgres', 'SELECT id FROM snowflake_fleet.fleet');
$server->create_database('later');
is($server->safe_psql('later', 'SELECT last_value FROM snowflake.fleet'), $number, 'CREATE EXTENSION stores the number of the fleet');

$server->backup('base');
my $copy = Snowflake::Node->new('copy');
$copy->init_from_backup($server, 'base');
$copy->append_conf('postgresql.conf', "snowflake.lease_conninfo = ''\nsnowflake.leased_regions = ''\nsnowflake.region = 0\n");
$copy->start;
foreach my $database ('early', 'later')
{
	$copy->refuses('SELECT snowflake.next_id(1)', { sqlstate => '55000', message => 'minted its ids under leases', detail => 'Sequence snowflake.fleet' },
		"$database: the copy refuses", $database);
	is($copy->safe_psql($database, 'SELECT minting, reason FROM snowflake.health'), 'f|ids were minted under leases, but this server leases no region', "$database: health of the copy shows that it leases no region");
	is(scalar($server->ids('SELECT snowflake.next_id(1)', $database)), 1, "$database: the original mints");
	is($server->safe_psql($database, 'SELECT last_value FROM snowflake.fleet'), $number, "$database: the original has stored the number of the fleet");
}

done_testing();
