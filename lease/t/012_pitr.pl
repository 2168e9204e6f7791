# A leased server recovered to an earlier time, beside its original and under a clock that is behind: a region of its own, so
# that nothing comes again, not even what the copy never heard of.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../../fleet/t/lib", "$FindBin::RealBin/../../t/lib";
use Snowflake::Control;
use Snowflake::Node;
use Test::More;

my $control = Snowflake::Control->create('control');
$control->start;
$control->install;
$control->safe_psql('postgres', q{SELECT snowflake_fleet.enroll('alpha')});
my $original = Snowflake::Node->create('original', has_archiving => 1, allows_streaming => 1,
	conf => sprintf(<<~'CONF', $control->host, $control->port));
	snowflake.region = -1
	snowflake.max_wait = 30s
	snowflake.max_skew = 10min
	snowflake.fleet = 'host=''%s'' port=%s dbname=postgres user=alpha'
	CONF
$original->start;
$original->safe_psql('postgres', 'CREATE EXTENSION snowflake; CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), n int)');

# Some milliseconds of ids, as rows.
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
$original->safe_psql('postgres', q{SELECT pg_create_restore_point('before')});
my $marked = $original->mark;
$original->poll_query_until('postgres', "SELECT extract(epoch FROM clock_timestamp()) * 1000 > $marked") or die 'the clock stands still';
$twice += mint($original);
is($twice, 0, 'the original');
$original->safe_psql('postgres', 'SELECT pg_switch_wal()');

my $copy = Snowflake::Node->create_from_backup('copy', $original, 'base', has_restoring => 1, standby => 0,
	conf => "recovery_target_name = 'before'\nrecovery_target_action = promote\narchive_mode = off\n");
$copy->clock->set(-300);
$copy->start;
$copy->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'no end of recovery';
is($copy->safe_psql('postgres', 'SELECT count(*) FROM photos'), '40000', 'what came after the restore point is gone');
# From before the lost rows on, by its clock, over the time in which the original minted what the copy has not heard of.
$copy->clock->set($marked / 1000 - time - 1);
my $until = $original->safe_psql('postgres', 'SELECT snowflake.time_of(max(id)) FROM photos');
$twice += mint($copy);
is($copy->safe_psql('postgres', "SELECT snowflake.time_of(min(id)) < '$until' FROM photos WHERE snowflake.region_of(id) <> 0"), 't', 'its ids begin before the last lost one');
my $rounds = 0;
do { $twice += mint($copy) } while ++$rounds < 200 && $copy->safe_psql('postgres', "SELECT snowflake.time_of(max(id)) < '$until' FROM photos") eq 't';
is($twice, 0, 'no id comes again');
is($copy->safe_psql('postgres', 'SELECT count(DISTINCT snowflake.region_of(id)) FROM photos'), '2', 'its region is another one');
like($copy->log_content, qr/WARNING:  snowflake: the clocks of this server and its control database are apart/, 'and the log tells of the clock');
$twice += mint($original) + mint($copy);
is($twice, 0, 'side by side, no id twice');

done_testing();
