# Tests that no id repeats after a failover or recovery has lost rows. The recovered server must lease another region.

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
$lease_server->safe_psql('postgres', q{SELECT snowflake_fleet.add_server('alpha')});
my $original = Snowflake::Node->create('original', has_archiving => 1, allows_streaming => 1,
	conf => sprintf(<<~'CONF', $lease_server->host, $lease_server->port));
	snowflake.leased_regions = '0-3'
	snowflake.max_wait = 30s
	snowflake.max_skew = 10min
	snowflake.lease_conninfo = 'host=''%s'' port=%s dbname=postgres user=alpha'
	CONF
$original->start;
$original->safe_psql('postgres', 'CREATE EXTENSION snowflake; CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), n int)');

my %seen;
sub mint
{
	my ($node) = @_;
	my @ids = $node->ids('INSERT INTO photos (n) SELECT g FROM generate_series(1, 20000) g RETURNING id');
	return scalar grep { $seen{$_}++ } @ids;
}
my $twice = mint($original);
$original->backup('base');
$twice += mint($original);
my $standby = Snowflake::Node->create_from_backup('standby', $original, 'base', has_streaming => 1);
$standby->start;
$original->safe_psql('postgres', q{SELECT pg_create_restore_point('before')});
$original->wait_for_catchup($standby);
$standby->stop;
my $marked = $original->mark;
$original->poll_query_until('postgres', "SELECT extract(epoch FROM clock_timestamp()) * 1000 > $marked") or die 'the clock stands still';
$twice += mint($original);
is($twice, 0, 'ids of the original are unique');
my $until = $original->safe_psql('postgres', 'SELECT snowflake.time_of(max(id)) FROM photos');
$original->safe_psql('postgres', 'SELECT pg_switch_wal()');

# Sets the clock to the time at which the lost rows were inserted, and checks that new ids differ from the ids of the
# lost rows.
sub mints_through_lost_time
{
	my ($node, $what) = @_;
	$node->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'no end of recovery';
	is($node->safe_psql('postgres', 'SELECT count(*) FROM photos'), '40000', "$what: some rows are lost");
	$node->clock->set($marked / 1000 - time - 5);    # 5 s before the lost rows, because a session must start first
	$twice += mint($node);
	is($node->safe_psql('postgres', "SELECT snowflake.time_of(min(id)) < '$until' FROM photos WHERE snowflake.region_of(id) <> 0"), 't',
		"$what: its first id is earlier than the last lost one");
	my $rounds = 0;
	do { $twice += mint($node) } while ++$rounds < 200 && $node->safe_psql('postgres', "SELECT snowflake.time_of(max(id)) < '$until' FROM photos") eq 't';
	is($twice, 0, "$what: no id repeats a lost one");
	is($node->safe_psql('postgres', 'SELECT count(DISTINCT snowflake.region_of(id)) FROM photos'), '2', "$what: the server mints in another region");
	return;
}
my $copy = Snowflake::Node->create_from_backup('copy', $original, 'base', has_restoring => 1, standby => 0,
	conf => "recovery_target_name = 'before'\nrecovery_target_action = promote\narchive_mode = off\n");
$copy->clock->set(-300);
$copy->start;
mints_through_lost_time($copy, 'a point-in-time recovery');
like($copy->log_content, qr/WARNING:  snowflake: the clocks of this server and its lease server differ/, 'the log shows that the clocks of the server and its lease server differ');

$original->stop('immediate');
$standby->clock->set(-300);
$standby->start;
is($standby->safe_psql('postgres', 'SELECT region IS NULL FROM snowflake.lease'), 't', 'a standby leases no region');
$standby->promote;
mints_through_lost_time($standby, 'a failover');

$original->start;
$twice += mint($_) foreach $original, $copy, $standby;
is($twice, 0, 'ids are unique if all three servers mint at the same time');

done_testing();
