# shellcheck shell=bash disable=SC2034,SC2154
#
# Measures the cost of calls that can grow with the number of shards and databases. No call waits for the clock, because
# ids may run 60 s ahead.
begin_results scale
start_server 'snowflake.max_lead = 60s' 'snowflake.layout = instagram'  # 8,192 shards

# rate FUNCTION ARGUMENTS: prints the CPU time of one call of FUNCTION in ns, measured by bench.rate() in one session.
rate() {
  sql -c "SELECT round(cpu_ns::numeric / calls, 2) FROM bench.rate('$1', $2, now(), $(by_form 0.3 0.05))"
}

sql -c "DO \$\$ BEGIN FOR i IN 1 .. 4096 LOOP EXECUTE 'CREATE SEQUENCE many_' || i; END LOOP; END \$\$"
for run in $(seq "$(by_form 5 3)"); do
  for n in 1 16 256 4096; do
    sample "next_id" "CPU ns a call, $n in turn" "$run" \
      "$(rate 'snowflake.next_id(int)' "ARRAY(SELECT (i + 100 * $run) % 8192 FROM generate_series(1, $n) AS i)::bigint[]")"
    sample "nextval cache 1" "CPU ns a call, $n in turn" "$run" \
      "$(rate 'nextval(regclass)' "ARRAY(SELECT ('many_' || i)::regclass::oid FROM generate_series(1, $n) AS i)::bigint[]")"
  done
done

# Measures minting in the database postgres after 1, 8 and 32 other databases of the server have minted.
sql -c 'CREATE DATABASE many_0'
PGOPTIONS='-c client_min_messages=warning' sql -d many_0 -c 'CREATE EXTENSION snowflake'
known=0
for n in 1 8 32; do
  [ "$n" = 1 ] || sql -v first=$((known + 1)) -v last=$((n - 1)) -f "$work/source/bench/sql/databases.sql"
  known=$((n - 1))
  for database in $(seq 0 "$known"); do
    sql -d "many_$database" -c 'SELECT snowflake.next_id(8100)' >/dev/null
  done
  for run in $(seq "$(by_form 5 3)"); do
    sample "next_id" "CPU ns a call, $n databases" "$run" \
      "$(rate 'snowflake.next_id(int)' "ARRAY[7000 + $n * 10 + $run]")"
  done
done
