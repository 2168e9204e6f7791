# shellcheck shell=bash disable=SC2034,SC2154
#
# Measures how many ids several sessions mint at the same time. No call waits for the clock, because ids may run 60 s
# ahead.
begin_results crowd
start_server 'snowflake.layout = instagram' 'snowflake.max_lead = 60s' 'max_connections = 80'
shard=0

# together SUBJECT FUNCTION ARGUMENT...: opens one session for each ARGUMENT, which calls FUNCTION in a C loop. The
# loops of all sessions begin at the same time. Stores the calls per second of all sessions together, and the mean CPU
# time per call.
together() {
  local subject=$1 function=$2 begin pids=() i=0 argument
  shift 2
  begin=$(sql -c "SELECT now() + '150 ms'")
  for argument in "$@"; do
    i=$((i + 1))  # increases the counter here, because the next command runs in a background process
    sql -c "SELECT calls * 1e9 / wall_ns, cpu_ns::float8 / calls FROM bench.rate('$function', ARRAY[$argument]::bigint[], '$begin', $(by_form 0.3 0.2))" \
      >"$work/rate.$i" &
    pids+=($!)
  done
  wait "${pids[@]}"
  sample "$subject" "calls/s, $# sessions" "$run" "$(cat "$work"/rate.* | awk '{sum += $1} END {printf "%.0f", sum}')"
  sample "$subject" "CPU ns a call, $# sessions" "$run" "$(cat "$work"/rate.* | awk '{sum += $2} END {printf "%.2f", sum / NR}')"
  rm -f "$work"/rate.*
}

for run in $(seq "$(by_form 5 1)"); do
  one="'one'::regclass::oid" hundred="'hundred'::regclass::oid"
  together 'C: clock and swap, one word' 'bench.id(int)' 1
  together 'C: clock and swap, one word' 'bench.id(int)' 1 1
  together 'C: clock and swap, own words' 'bench.id(int)' 1 2
  together 'next_id, one shard' 'snowflake.next_id(int)' $((++shard))
  together 'next_id, one shard' 'snowflake.next_id(int)' $((++shard)) $shard
  together 'next_id, own shards' 'snowflake.next_id(int)' $((++shard)) $((++shard))
  together 'nextval cache 1' 'nextval(regclass)' "$one"
  together 'nextval cache 1' 'nextval(regclass)' "$one" "$one"
  together 'nextval cache 100' 'nextval(regclass)' "$hundred"
  together 'nextval cache 100' 'nextval(regclass)' "$hundred" "$hundred"
done

# Runs pgbench with statements that mint 1000 ids each, ten per row. The measurement is short, because ids may run at
# most 60 s (max_lead) ahead of the clock. In one shard, many clients reach the limit "max_lead" in a few seconds.
calls=$(sql -c "SELECT 'no generator', 'i' UNION ALL SELECT 'next_id, one shard', 'snowflake.next_id(:shard::int)'
                UNION ALL SELECT 'next_id, own shards', 'snowflake.next_id(:shard::int + :client_id::int)'
                UNION ALL SELECT name, made_by FROM bench.key
                           WHERE name IN ('nextval cache 1', 'nextval cache 100', 'UUID v7')
                UNION ALL SELECT name, made_by FROM bench.key
                           WHERE name IN ('Instagram, one expression', 'UUID v4')")
for run in $(seq "$(by_form 2 1)"); do
  for clients in $(by_form "$client_counts" 16); do
    while IFS=$'\t' read -r name call; do
      [[ $clients = 16 || ! $name =~ Instagram|v4|no\ generator ]] || continue
      ten=$(printf ", $call%.0s" $(seq 10))
      echo "SELECT count(*) FROM (SELECT ${ten#, } FROM generate_series(1, 100) AS i OFFSET 0) AS x;" |
        unprivileged tee "$work/files/crowd.sql" >/dev/null
      shard=$((shard + 66))  # The shard is changed here, because a command substitution in the next command would lose the new value.
      sample "$name" "ids/s, $clients clients" "$run" \
        "$(tps -c "$clients" -j 2 -T 1 -D "shard=$shard" -f "$work/files/crowd.sql" |
          awk '{printf "%.0f", $1 * 1000}')"
    done <<<"$calls"
  done
done
sample next_id waits 1 "$(sql -c 'SELECT coalesce(sum(waits), 0) FROM snowflake.shard_stats')"
