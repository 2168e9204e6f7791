# shellcheck shell=bash disable=SC2034,SC2154
#
# Measures how long the longest calls of next_id() take under default settings. One session mints at full rate in 64
# shards in turn, so no call waits for the clock. During the measurement the server extends the high-water mark twice a
# second. The histograms of the durations in all runs are added up.
begin_results stall
printf 'subject\trun\tup_to_ns\tcalls\n' >"$out/results/stall_histogram.tsv"
start_server
latency() {
  sql -c "SELECT '$1', $run, up_to_ns, calls FROM bench.latency('$2', $3, $(by_form 5 1)) ORDER BY up_to_ns" \
    >>"$out/results/stall_histogram.tsv"
}
for run in $(seq 3); do
  sql -c 'SELECT snowflake.next_id(0)' >/dev/null
  before=$(sql -c 'SELECT covered_until FROM snowflake.health')
  latency next_id 'snowflake.next_id(int)' 'ARRAY(SELECT i FROM generate_series(0, 63) AS i)::bigint[]'
  sample next_id 'seconds that the mark moved' "$run" \
    "$(sql -c "SELECT extract(epoch FROM covered_until - '$before') FROM snowflake.health")"
  latency 'nextval cache 1' 'nextval(regclass)' "ARRAY['one'::regclass::oid]::bigint[]"
  latency 'C: clock' 'bench.clock(int)' 'ARRAY[1]::bigint[]'
done
sample next_id waits 1 "$(sql -c 'SELECT sum(waits) FROM snowflake.shard_stats')"

# Measures how many ids per second one session mints in ten shards. The default layout allows 10,240,000 ids per second
# in ten shards, plus the ids that run ahead of the clock.
for run in $(seq "$(by_form 3 1)"); do
  sample 'next_ids, ten shards' 'ids/s' "$run" "$(sql -c "
    DO \$\$
    DECLARE ids bigint := 0; begun timestamptz := clock_timestamp(); seconds float8 := 0;
    BEGIN
      WHILE seconds < $(by_form 4 2) LOOP
        FOR shard IN 101 .. 110 LOOP
          PERFORM snowflake.next_ids(shard, 50000);
        END LOOP;
        ids := ids + 500000;
        seconds := extract(epoch FROM clock_timestamp() - begun);
      END LOOP;
      PERFORM set_config('bench.result', round(ids / seconds)::text, false);
    END \$\$" -c "SELECT current_setting('bench.result')")"
done
