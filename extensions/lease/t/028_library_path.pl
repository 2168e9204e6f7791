# Tests a server with leased regions whose libraries are not in $libdir, see t/lib/Snowflake/LibraryPath.pm.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use PostgreSQL::Test::Utils;
use Snowflake::LeaseServer;
use Snowflake::LibraryPath;
use Test::More;

my $lease_server = Snowflake::LeaseServer->create('lease_server');
$lease_server->start;
$lease_server->install;
$lease_server->safe_psql('postgres', q{SELECT snowflake_fleet.add_server('alpha')});
my $server = Snowflake::LibraryPath::create_running('elsewhere', conf => sprintf(
	"snowflake.lease_conninfo = 'host=''%s'' port=%s dbname=postgres user=alpha'\nsnowflake.region = -1\nsnowflake.leased_regions = '0,1'\nsnowflake.max_wait = 60s\n", $lease_server->host, $lease_server->port));
is($server->safe_psql('postgres', 'SELECT snowflake.region_of(snowflake.next_id(5)), region FROM snowflake.lease'), '0|0', 'the server mints in the region that it leased');

done_testing();
