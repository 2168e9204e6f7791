# A server that may not mint: the errors of calls and the reasons in health. It has no region, or one whose ids begin
# later, or its lease has ended, or the database belongs to another fleet.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Control;
use Snowflake::Node;
use Test::More;

my $control = Snowflake::Control->create('control');
$control->start;
my %fleet = map {
	$control->safe_psql("postgres", "CREATE DATABASE $_");
	$control->install($_);
	$control->safe_psql($_, q{SELECT snowflake_fleet.create_fleet(lease => '6 s', max_lead => '1 s', max_skew => '1 s')});
	$_ => sprintf q{host=''%s'' port=%s dbname=%s user=alpha}, $control->host, $control->port, $_
} 'ours', 'theirs';
$control->safe_psql('ours', q{SELECT snowflake_fleet.add_server('alpha')});
$control->safe_psql('theirs', q{SELECT snowflake_fleet.add_server('alpha')});

my $server = Snowflake::Node->create('server',
	conf => "snowflake.max_wait = 20s\nsnowflake.reserve = 3s\nsnowflake.leased_regions = '0-3'\nsnowflake.lease = 6s\nsnowflake.max_skew = 1s\nsnowflake.lease_conninfo = '$fleet{ours}'\n");

# Calls are refused at once, and health shows the same reason.
sub refused
{
	my ($reason, $error, $name, $database) = @_;
	$database //= 'postgres';
	$server->refuses(q{SET snowflake.max_wait = '1s'; SELECT snowflake.next_id(1)}, { sqlstate => '55000', %{$error} }, $name, $database);
	my ($minting, $why) = split /\|/, $server->safe_psql($database, 'SELECT minting, reason FROM snowflake.health');
	is("$minting|$why", "f|$reason", 'and health says so');
	return;
}
my $refusals = q{SELECT refusals FROM snowflake.refusals WHERE cause = 'lease'};

$server->start;
$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');
like($server->ids('SELECT snowflake.next_id(1)'), qr/^\d+$/, 'it mints');
is($server->safe_psql('postgres', 'SELECT minting FROM snowflake.health'), 't', 'and health says so');

# The lease server is away until the lease is over.
$control->stop;
$server->poll_query_until('postgres', 'SELECT until < clock_timestamp() FROM snowflake.lease') or die 'the lease goes on';
refused('the lease has ended',
	{ message => 'the lease of region \d+ has ended', detail => 'could not connect', hint => '.' }, 'the lease is over');
cmp_ok($server->safe_psql('postgres', $refusals), '>', 0, 'and the refusal is counted');
$server->restart;
refused('no region is leased', { message => 'this server has no region to mint in', detail => 'could not connect', hint => 'Check' },
	'started without the lease server');

# When the lease server is back, minting resumes without action.
$control->start;
like($server->ids('SELECT snowflake.next_id(1)'), qr/^\d+$/, 'the lease server is back');

# After the clock is set back, ids of a new database begin above the existing ids of the region.
$server->ids('SELECT snowflake.next_id(1)');
$server->clock->set(-60);
$server->create_database('other');
refused('the ids of the leased region begin later',
	{ message => 'the ids of the leased region begin later', detail => 'Ids of region \d+ may be minted from .* on; the clock shows', hint => '.' },
	'with the clock behind the region', 'other');
$server->clock->set(0);
like($server->ids('SELECT snowflake.next_id(1)', 'other'), qr/^\d+$/, 'when the time has come, it mints');

# The fleet has one layout, and so have the ids that its servers mint.
$server->safe_psql('postgres', 'CREATE DATABASE twitter');
$server->safe_psql('twitter', "SET snowflake.layout = 'twitter'; CREATE EXTENSION snowflake");
refused('another layout than the fleet',
	{ message => 'this database has another layout than the fleet', detail => 'This database has layout 41/5\+5/12.* had layout 41/5\+8/10', hint => 'Set "snowflake.layout"' },
	'a database of another layout', 'twitter');

# Leases of another fleet say nothing about this database's ids.
$server->append_conf('postgresql.conf', "snowflake.lease_conninfo = '$fleet{theirs}'\n");
$server->restart;
$server->poll_query_until('postgres', 'SELECT region IS NOT NULL FROM snowflake.lease') or die 'no region';
$server->refuses('SELECT snowflake.next_id(1)',
	{ sqlstate => '55000', message => 'this database belongs to another fleet', detail => 'has fleet \d+, .* is that of fleet \d+', hint => 'Correct "snowflake.lease_conninfo"' },
	'another fleet');
$server->stop;
$control->stop;

done_testing();
