# shellcheck shell=bash disable=SC2034,SC2154
# One call from SQL. In step with the clock: a layout whose ticks hold more ids than a loop can take. Then
# ahead of it: under the default layout a tight loop wants some forty times the 1,024,000 ids that a shard
# has a second. They may run 60 s ahead, and each run has a shard of its own, so that pacing does not bind.
begin_results call
runs="-c bench.runs=$(by_form 15 5)"
# Then both without the processor's counter, as on a machine whose clock source is not based on it.
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
