# A virtual machine whose host has other work: the kernel's timer ticks come late, and with them the coarse clock. Nothing
# of that shows in an id, also of a shard that was ahead of the clock and is caught up with.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
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
		is($node->safe_psql('postgres', <<'SQL'), '0|t', "ticks that are $late s late, use_tsc $use_tsc");
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

done_testing();
