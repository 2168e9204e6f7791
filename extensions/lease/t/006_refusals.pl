# Tests the errors of next_id(), and the reasons that the view health shows, if a server has no valid lease.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use PostgreSQL::Test::Utils;
use Snowflake::LeaseServer;
use Snowflake::Node;
use Test::More;

my $lease_server = Snowflake::LeaseServer->create('lease_server');
$lease_server->start;
my %fleet = map {
	$lease_server->safe_psql("postgres", "CREATE DATABASE $_");
	$lease_server->install($_);
	$lease_server->safe_psql($_, q{SELECT snowflake_fleet.create_fleet(lease => '6 s', max_lead => '1 s', max_skew => '1 s')});
	$_ => sprintf q{host=''%s'' port=%s dbname=%s user=alpha}, $lease_server->host, $lease_server->port, $_
} 'ours', 'theirs';
$lease_server->safe_psql('ours', q{SELECT snowflake_fleet.add_server('alpha')});
$lease_server->safe_psql('theirs', q{SELECT snowflake_fleet.add_server('alpha')});

my $server = Snowflake::Node->create('server',
	conf => "snowflake.max_wait = 20s\nsnowflake.reserve = 3s\nsnowflake.leased_regions = '0-3'\nsnowflake.lease = 6s\nsnowflake.max_skew = 1s\nsnowflake.lease_conninfo = '$fleet{ours}'\n");

# Checks that next_id() fails, and that health shows the reason of the error.
sub refused
{
	my ($reason, $error, $name, $database) = @_;
	$database //= 'postgres';
	$server->refuses(q{SET snowflake.max_wait = '1s'; SELECT snowflake.next_id(1)}, { sqlstate => '55000', %{$error} }, $name, $database);
	my ($minting, $why) = split /\|/, $server->safe_psql($database, 'SELECT minting, reason FROM snowflake.health');
	is("$minting|$why", "f|$reason", "health shows the reason: $reason");
	return;
}
my $refusals = q{SELECT refusals FROM snowflake.refusals WHERE cause = 'lease'};

$server->start;
$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');
like($server->ids('SELECT snowflake.next_id(1)'), qr/^\d+$/, 'the server mints');
is($server->safe_psql('postgres', 'SELECT minting FROM snowflake.health'), 't', 'health shows that the server mints');

# Stops the lease server until the lease has ended.
$lease_server->stop;
$server->poll_query_until('postgres', 'SELECT until < clock_timestamp() FROM snowflake.lease') or die 'the lease goes on';
refused('the lease of the region has ended',
	{ message => 'the lease of region \d+ has ended', detail => 'could not connect', hint => '.' }, 'next_id() fails if the lease has ended');
cmp_ok($server->safe_psql('postgres', $refusals), '>', 0, 'refusals because of the lease are counted');
$server->restart;
refused('no region is leased', { message => 'this server has not leased a region', detail => 'could not connect', hint => 'check the lease server' },
	'next_id() fails if the server started while the lease server was stopped');

$lease_server->start;
like($server->ids('SELECT snowflake.next_id(1)'), qr/^\d+$/, 'the server mints when the lease server is back');

# Even if the clock is set back, ids of a new database must be greater than ids that other databases minted.
$server->ids('SELECT snowflake.next_id(1)');
$server->clock->set(-60);
$server->create_database('other');
refused('this database cannot mint ids of its region yet',
	{ message => 'this database cannot mint ids of its region yet', detail => 'Ids of region \d+ may be minted from .*\. The clock shows', hint => '.' },
	'next_id() fails if the clock is behind the ids of the region', 'other');
$server->clock->set(0);
like($server->ids('SELECT snowflake.next_id(1)', 'other'), qr/^\d+$/, 'the new database mints when the clock has passed the ids of the region');

# A database cannot mint if its id layout differs from the id layout of the lease.
$server->safe_psql('postgres', 'CREATE DATABASE twitter');
$server->safe_psql('twitter', "SET snowflake.layout = 'twitter'; CREATE EXTENSION snowflake");
refused('the id layout differs from the id layout of the lease server',
	{ message => 'the id layout of this database differs from the id layout of the lease server', detail => 'This database has layout 41/5\+5/12.* had layout 41/5\+8/10', hint => 'set "snowflake.layout"' },
	'next_id() fails in a database whose layout is not that of the fleet', 'twitter');

# A database that has minted ids under one lease server must not mint under another lease server, which could lease the
# same region again.
$server->append_conf('postgresql.conf', "snowflake.lease_conninfo = '$fleet{theirs}'\n");
$server->restart;
$server->poll_query_until('postgres', 'SELECT region IS NOT NULL FROM snowflake.lease') or die 'no region';
$server->refuses('SELECT snowflake.next_id(1)',
	{ sqlstate => '55000', message => 'this database minted its ids under leases of another lease server', detail => 'contains fleet number \d+\. .* belongs to fleet number \d+', hint => 'Correct "snowflake.lease_conninfo"' },
	'next_id() fails if the lease is of another fleet');
$server->stop;
$lease_server->stop;

done_testing();
