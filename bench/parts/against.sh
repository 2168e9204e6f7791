# shellcheck shell=bash disable=SC2034,SC2154
#
# Compares the cost of calls in another commit with the cost in this commit. Each commit has its own server, and the
# measurement alternates between both servers. If unchanged functions such as nextval() cost the same on both servers,
# the results are comparable.
begin_results against
new_pg_config=$pg_config
build_old() {
  pg_config=$servers_pg_config
  mkdir "$work/old" "$work/old/run" "$work/old/source"
  private_postgres "$work/old/pg"
  git -C "$source_dir" archive "$against" | tar --no-same-owner -xf - -C "$work/old/source"
  [ "$(id -u)" != 0 ] || chown -R postgres: "$work/old/source" "$work/old/run"
  build_and_install "$work/old/source"
  old_pg_config=$pg_config
  build_and_install "$work/source/bench/extension"
}
at() {  # old or new
  local -n its_pg_config=${1}_pg_config
  bin=$("$its_pg_config" --bindir)
  place=$([ "$1" = new ] && echo "$work/run" || echo "$work/old/run")
}
both() { local which; for which in old new; do at $which; "$@"; done; }
build_old

rounds=$(by_form 40 5)
# Each round of the comparison measures the servers of both commits. The two servers take turns in being measured first.
# Collects the results of both servers after the last round.
measure_rounds() {
  local run which
  for run in $(seq 0 "$rounds"); do
    for which in $([ $((run % 2)) = 0 ] && echo old new || echo new old); do
      at "$which"
      sql -c "CALL bench.measure_round($run)"
    done
  done
  for which in old new; do
    at $which
    sql -c 'CALL bench.net_calls()' -c "SELECT '$which: ' || subject, metric, run, value FROM bench.sample" >>"$results"
  done
}
both start_server "snowflake.layout = '41/3/20'" 'snowflake.max_lead = 60s'
both sql -c "INSERT INTO bench.subject (name, metric, expression, rows) VALUES
    ('(a column)', 'ns', 'i', 20000), ('C: clock and swap', 'ns', 'bench.id(5)', 20000), ('nextval cache 1', 'ns', 'nextval(''one'')', 20000),
    ('next_id', 'ns', 'snowflake.next_id(SHARD)', 20000), ('next_id, 8 shards in turn', 'ns', 'snowflake.next_id(NTH % 8)', 20000),
    ('shard_of', 'ns', 'snowflake.shard_of(i)', 20000), ('created_within', 'ns', 'snowflake.created_within(i, now(), now())', 20000)"
measure_rounds
both stop_server
both start_server 'snowflake.max_lead = 60s'
both sql -c "INSERT INTO bench.subject (name, metric, expression, rows) VALUES
    ('(a column)', 'ns', 'i', 50000), ('next_id, in a burst', 'ns', 'snowflake.next_id(SHARD)', 50000),
    ('next_ids(1000)', 'ns', 'snowflake.next_ids(SHARD, 1000)', 20)"
measure_rounds
both stop_server
at new
pg_config=$new_pg_config
printf '%s\n' "$against" "$(commit_of "$source_dir")" >"$out/results/against.commits"
