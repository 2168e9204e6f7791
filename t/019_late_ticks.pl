# Tests that ids have the right time if timer interrupts come late, as on a busy virtual machine. Late timer interrupts
# delay the kernel's coarse clock. Tests for which clock sources the server uses the processor's time stamp counter.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use Snowflake::Machine;
use Snowflake::Node;
use Test::More;

my $node = Snowflake::Node->create_running('main', conf => "snowflake.max_lead = 1s\n");

foreach my $use_tsc ('on', 'off')
{
	$node->append_conf('postgresql.conf', "snowflake.use_tsc = $use_tsc");
	$node->reload;
	foreach my $late (0, 0.3)
	{
		$node->clock->late($late);
		is($node->safe_psql('postgres', <<'SQL'), '0|t', "ids have the right time if ticks are $late s late, with use_tsc $use_tsc");
CREATE TEMP TABLE verdict (older_than_the_call bigint, caught_up boolean);
DO $$
DECLARE
  id bigint;
  before timestamptz;
  older bigint := 0;
  in_step bigint := 0;
  until timestamptz := clock_timestamp() + interval '200 ms';
BEGIN
  PERFORM snowflake.observe(snowflake.make_id(clock_timestamp() + interval '100 ms', 7, 0));
  WHILE clock_timestamp() < until LOOP
    -- Slower than the shard can, so that the clock catches up with it
    PERFORM count(*) FROM generate_series(1, 20);
    before := clock_timestamp();
    id := snowflake.next_id(7);
    older := older + (snowflake.time_of(id) < date_trunc('milliseconds', before))::int;
    in_step := in_step + (snowflake.time_of(id) <= clock_timestamp())::int;
  END LOOP;
  INSERT INTO verdict VALUES (older, in_step > 0);
END
$$;
SELECT * FROM verdict;
SQL
	}
}

# The server uses the processor's time stamp counter only if the kernel does, and if the counter's rate is constant.
my $status = q{SELECT clock_source, counter_used FROM snowflake.clock_history};
if (`uname -m` eq "x86_64\n")
{
	$node->append_conf('postgresql.conf', 'snowflake.use_tsc = on');
	my $machine = Snowflake::Machine->new($node);
	my $both = 'fpu tsc constant_tsc rep_good nonstop_tsc cpuid';
	foreach (
		[ 'tsc', 'fpu tsc', 't', 'uses the processor' ],
		[ 'kvm-clock', 'fpu tsc constant_tsc', 'f', 'does not have both flags' ],
		[ 'kvm-clock', undef, 'f', 'does not have both flags' ],
		[ 'hpet', $both, 'f', 'not one of the sources that use' ],
		[ 'arch_sys_counter', $both, 'f', 'not one of the sources that use' ],
		[ undef, $both, 'f', 'not one of the sources that use' ],
		[ 'kvm-clock', $both, 't', 'uses the processor' ])
	{
		my ($source, $flags, $used, $logged) = @$_;
		my $name = ($source // 'no clock source') . ', ' . ($flags // 'no flags');
		my $named = $source // '';
		my $before = length $node->log_content;
		$machine->set_clock_source($source, $flags);
		$node->restart;
		is($node->safe_psql('postgres', $status), "$named|$used", "$name: clock_history shows whether the counter is used");
		my $news = substr $node->log_content, $before;
		like($news, qr/LOG:  clock source "$named": [^\n]*(?:\n[^\n]*DETAIL: [^\n]*)?$logged/, "$name: the log shows whether the counter is used");
		is(scalar(() = $news =~ /LOG:  clock source/g), 1, "$name: the log has one line about the clock source");
	}
	# The kernel changes from tsc to another clock source while the server runs.
	$machine->set_clock_source('hpet', $both);
	$node->poll_query_until('postgres', 'SELECT snowflake.next_id(1) > 0 AND NOT counter_used FROM snowflake.clock_history')
	  or die 'the counter is still used';
	is($node->safe_psql('postgres', $status), 'hpet|f', 'clock_history shows the new clock source after the kernel changed it');
	$machine->set_clock_source('tsc', $both);
	$node->append_conf('postgresql.conf', 'snowflake.use_tsc = off');
	$node->restart;
	is($node->safe_psql('postgres', $status), 'tsc|f', 'use_tsc off: the counter is not used');
	like($node->log_content, qr/"snowflake.use_tsc" is off/, 'use_tsc off: the log contains the reason');
}

done_testing();
