# shellcheck shell=bash disable=SC2034,SC2154
#
# Measures transactions that insert one row each, with pgbench. In this measurement all settings of the extension have
# their default values, and all clients mint in the same shard.
begin_results single
start_server 'max_connections = 80'
keys=$(sql -c "SELECT place, name, type, replace(made_by, 'SHARD', '5') FROM bench.key
                WHERE name IN ('next_id', 'nextval cache 1', 'UUID v7') ORDER BY place")
while IFS=$'\t' read -r place_of name type made_by; do
  sql -c "CREATE TABLE single_$place_of (id $type PRIMARY KEY DEFAULT $made_by, v integer)"
  echo "INSERT INTO single_$place_of (v) VALUES (1);" | unprivileged tee "$work/files/single_$place_of.sql" >/dev/null
done <<<"$keys"
for run in $(seq "$(by_form 2 1)"); do
  for clients in $(by_form "$client_counts" '1 16'); do
    while IFS=$'\t' read -r place_of name _; do
      sample "$name" "rows/s, $clients clients" "$run" \
        "$(tps -c "$clients" -j 2 -T 1 -f "$work/files/single_$place_of.sql")"
    done <<<"$keys"
  done
done
