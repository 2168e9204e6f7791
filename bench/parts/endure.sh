# shellcheck shell=bash disable=SC2034,SC2154
#
# Measures the speed and the memory of two sessions that mint ids as fast as possible. Each session mints in 64 shards,
# and checks every id. Both sessions mint in one common shard. The measurement consists of many slices, each with one
# transaction. The results show if a session becomes slower, or does not free the memory of a transaction.
begin_results endure
start_server
slices=$((endure / 10))
[ "$slices" -ge 10 ] || slices=10
seconds=$(awk "BEGIN { print $endure / $slices }")

# memory_of PID: prints the memory use of the process PID as two numbers in KiB, Pss and Rss. The first number (Pss)
# contains only this process's share of each shared memory page. The second number (Rss) contains each shared memory
# page completely.
memory_of() { as_root awk '/^Pss:/ { pss = $2 } /^Rss:/ { rss = $2 } END { print pss, rss }' "/proc/$1/smaps_rollup"; }
measure_memory() {  # WHEN
  local pid pss rss all=0 leader
  leader=$(head -1 "$place/data/postmaster.pid")
  for pid in "$leader" $(pgrep -P "$leader"); do
    read -r pss rss <<<"$(memory_of "$pid" 2>/dev/null || true)"
    all=$((all + ${pss:-0}))
  done
  sample server "KiB, $1" 1 "$all"
  for pid in $(sql -c "SELECT pid FROM pg_stat_activity WHERE application_name ~ '^endure' ORDER BY application_name"); do
    read -r pss rss <<<"$(memory_of "$pid")"
    sample session "KiB, $1" "$pid" "$pss"
    sample session "KiB resident, $1" "$pid" "$rss"
    sample session "KiB of its own, $1" "$pid" "$(as_root awk '/^(Private_Clean|Private_Dirty):/ { own += $2 } END { print own }' "/proc/$pid/smaps_rollup")"
  done
}

sql -c 'CREATE TABLE measured (at timestamptz)' -c 'CREATE TABLE slice (session integer, slice integer, ids bigint, misplaced bigint, descending bigint, twice bigint, wall_s float8)'
sessions=()
for session in 1 2; do
  sql -c "SET application_name = 'endure $session'" -f - >"$work/endure.$session" 2>&1 <<END &
$(for slice in $(seq "$slices"); do
  echo "SELECT clock_timestamp() AS began \\gset"
  echo "INSERT INTO slice SELECT $session, $slice, e.*, extract(epoch FROM clock_timestamp() - :'began')
          FROM bench.endure('snowflake.next_id(int)', ARRAY(SELECT 0 UNION ALL SELECT g FROM generate_series($((session * 100 - 99)), $((session * 100 - 37))) AS g), $seconds) AS e;"
done)
DO \$\$ BEGIN WHILE NOT EXISTS (SELECT FROM measured) LOOP PERFORM pg_sleep(0.05); COMMIT; END LOOP; END \$\$;
END
  sessions+=($!)
done
slices_done() {  # HOW MANY
  local pid
  until [ "$(sql -c 'SELECT count(*) FROM slice')" -ge "$1" ]; do
    for pid in "${sessions[@]}"; do
      kill -0 "$pid" 2>/dev/null || { cat "$work"/endure.? >&2; die "a session of the part endure failed"; }
    done
    sleep 1
  done
}
slices_done 4
measure_memory start
slices_done $((2 * slices))
measure_memory end
sql -c 'INSERT INTO measured VALUES (now())'
wait "${sessions[@]}"

sql -c "INSERT INTO bench.sample
        SELECT 'all', v.metric, 1, v.value
          FROM (SELECT sum(ids) AS ids, sum(misplaced) AS misplaced, sum(descending) AS descending, sum(twice) AS twice,
                       sum(wall_s) / 2 AS seconds FROM slice) AS s,
               LATERAL (VALUES ('ids', ids), ('of another shard', misplaced), ('not above the last one', descending),
                               ('that the other session had', twice), ('s', seconds),
                               ('counted by the server', (SELECT sum(ids) FROM snowflake.shard_stats)),
                               ('calls that waited', (SELECT sum(waits) FROM snowflake.shard_stats))) AS v (metric, value)" \
  -c "INSERT INTO bench.sample SELECT 'all', 'ids/s', slice, sum(ids / wall_s) FROM slice GROUP BY slice"
take_samples
