# shellcheck shell=bash disable=SC2034,SC2154
#
# Measures the cost of a call from SQL in two ways. In the first measurement ids do not run ahead of the clock, because
# the layout has more ids per millisecond than a loop can mint. In the second measurement ids run ahead of the clock.
# The default layout allows 1,024,000 ids per second in one shard. The second measurement mints about forty times as
# fast. No call waits for the clock, because ids may run 60 s ahead and each run has its own shard.
begin_results call
runs="-c bench.runs=$(by_form 15 5)"
# Measures the cost of calls with and without the processor's time stamp counter (TSC). If the machine's clock source is
# not the TSC, the TSC is used in no measurement.
for use_tsc in on off; do
  suffix=$([ $use_tsc = on ] || echo ', use_tsc off')
  start_server "snowflake.layout = '41/3/20'" 'snowflake.max_lead = 60s' "snowflake.use_tsc = $use_tsc"
  PGOPTIONS=$runs sql -v rows="$(by_form 20000 10000)" -v suffix="$suffix" -f "$work/source/bench/sql/call.sql"
  sample server 'counter used' "$([ $use_tsc = on ] && echo 1 || echo 2)" "$(sql -c 'SELECT counter_used::int FROM snowflake.clock_history')"
  take_samples
  start_server 'snowflake.max_lead = 60s' "snowflake.use_tsc = $use_tsc"
  PGOPTIONS=$runs sql -v rows="$(by_form 50000 25000)" -v suffix="$suffix" -f "$work/source/bench/sql/burst.sql"
  take_samples
done
