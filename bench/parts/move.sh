# shellcheck shell=bash disable=SC2034,SC2154
# The pause for writers while a shard moves between two servers, back and forth: 200,000 rows, three writers
# that follow the map. All servers on one machine, so that the copy and the writers share what it has.
begin_results move
build_and_install "$work/source/fleet"
region_of() { case $1 in control) echo 1 ;; a) echo 2 ;; b) echo 3 ;; esac; }
where() { echo "host=$work/run port=$((5540 + $(region_of "$1"))) user=bench dbname=postgres"; }
on() {
  local server=$1
  shift
  unprivileged "$bin/psql" -XqAt -v ON_ERROR_STOP=1 -d "$(where "$server")" "$@"
}
stop_move() {
  touch "$work/files/stop"
  wait
  local server
  for server in control a b; do
    unprivileged "$bin/pg_ctl" -s -D "$work/run/$server" -m immediate -w stop 2>/dev/null || true
  done
}
for server in control a b; do
  unprivileged "$bin/initdb" -D "$work/run/$server" -A trust -U bench --no-sync --locale=C.UTF-8 -E UTF8 >"$work/run/initdb.log"
  unprivileged tee -a "$work/run/$server/postgresql.conf" >/dev/null <<END
listen_addresses = ''
unix_socket_directories = '$work/run'
port = $((5540 + $(region_of $server)))
shared_preload_libraries = 'snowflake'
snowflake.region = $(region_of $server)
wal_level = logical
max_wal_size = 4GB
END
  unprivileged "$bin/pg_ctl" -s -D "$work/run/$server" -l "$work/run/$server.log" -w start
  on "$server" -c 'CREATE EXTENSION snowflake' -c 'CREATE EXTENSION snowflake_fleet' >/dev/null
done
on a -c 'CREATE SCHEMA shard_5; CREATE TABLE shard_5.users (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), name text NOT NULL)' \
  -c "INSERT INTO shard_5.users (name) SELECT 'user ' || n FROM generate_series(1, 200000) AS n"
on control -o /dev/null -c "SELECT snowflake_fleet.set_server('a', '$(where a)'), snowflake_fleet.set_server('b', '$(where b)')" \
  -c "SELECT snowflake_fleet.assign('[5,5]', 'a')"
rm -f "$work/files/stop"
for writer in 1 2 3; do
  unprivileged env PATH="$bin:$PATH" perl "$work/source/fleet/t/writer.pl" "$(where control)" 5 "$writer" \
    "$work/files/journal_$writer" "$work/files/stop" &
done
sleep 2
source=a target=b
for run in $(seq "$(by_form 15 3)"); do
  before=$(cat "$work"/files/journal_* | grep -c '^insert' || true) began=$EPOCHREALTIME
  said=$(unprivileged env PATH="$bin:$PATH" "$bin/snowflake-move-shard" --shard 5 --control "$(where control)" --to "$target") ||
    { stop_move; die "the shard did not move: $said"; }
  sample move 's, the whole move' "$run" "$(awk -v from="$began" -v to="$EPOCHREALTIME" 'BEGIN { print to - from }')"
  sample move 'rows inserted meanwhile' "$run" $(($(cat "$work"/files/journal_* | grep -c '^insert') - before))
  read -r waited refused <<<"$(sed -n 's/.*writers waited \([0-9.]*\) ms, then were refused for \([0-9.]*\) ms.*/\1 \2/p' <<<"$said")"
  sample move 'ms, writers waited' "$run" "$waited"
  sample move 'ms, writers were refused' "$run" "$refused"
  sample move 'ms, fence' "$run" "$(awk "BEGIN { print $waited + $refused }")"
  read -r source target <<<"$target $source"
done
stop_move
