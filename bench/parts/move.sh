# shellcheck shell=bash disable=SC2034,SC2154
#
# Measures how long writers wait while a shard moves between two servers, back and forth. The shard has 200,000 rows,
# and three writers find the shard's server in the shard map. All servers and writers share the resources of one
# machine.
begin_results move
# shellcheck source=bench/fleet.sh
. "$bench_dir/fleet.sh"
start_fleet
stop_move() {
  touch "$work/files/stop"
  wait
  stop_fleet
}
on a -c 'CREATE SCHEMA shard_5; CREATE TABLE shard_5.users (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), name text NOT NULL)' \
  -c "INSERT INTO shard_5.users (name) SELECT 'user ' || n FROM generate_series(1, 200000) AS n"
on control -o /dev/null -c "SELECT snowflake_fleet.assign('[5,5]', 'a')"
rm -f "$work/files/stop"
for writer in 1 2 3; do
  unprivileged env PATH="$bin:$PATH" perl "$work/source/extensions/routing/t/lib/writer.pl" "$(where control)" 5 "$writer" \
    "$work/files/journal_$writer" "$work/files/stop" &
done
sleep 2
source=a target=b
for run in $(seq "$(by_form 9 3)"); do
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
