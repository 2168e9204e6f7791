# shellcheck shell=bash disable=SC2154
#
# Runs scripts/demo --routing, which sources this file. The demo runs four servers, of which three have 16 shards. With
# PL/Proxy and postgres_fdw, the demo sends each query to the server that stores the row with the queried id. The demo
# moves a shard while clients write to the shard. When the demo ends, it leaves no files or processes.

names=(control north west south)   # the server "control" has the shard map, and routes queries
build_and_install "$demo/source/extensions/lease"
build_and_install "$demo/source/extensions/routing"
bin=$("$pg_config" --bindir)
export PGHOST=$demo PGDATABASE=postgres PGOPTIONS='-c client_min_messages=warning'
[ "$(id -u)" != 0 ] || export PGUSER=postgres

# on SERVER ARGUMENT...: runs psql with each ARGUMENT on SERVER.
on() {
  local server=$1
  shift
  unprivileged "$bin/psql" -X -q -P footer=off -v ON_ERROR_STOP=1 -p "${port[$server]}" "$@"
}
where() { echo "host=$demo port=${port[$1]} dbname=postgres"; }

step "Starting four servers: ${names[*]}, each with a region of its own; unix sockets only"
declare -A port
for i in "${!names[@]}"; do
  server=${names[i]}
  port[$server]=$((5501 + i))
  unprivileged "$bin/initdb" -D "$server" --auth=trust --encoding=UTF8 --no-locale --no-sync >initdb.log
  unprivileged tee -a "$server/postgresql.conf" >/dev/null <<END
shared_preload_libraries = 'snowflake'
snowflake.region = $((i + 1))
wal_level = logical
listen_addresses = ''
unix_socket_directories = '$demo'
port = ${port[$server]}
END
  unprivileged touch "$server.log"
  unprivileged "$bin/pg_ctl" start -s -w -D "$server" -l "$server.log"
  on "$server" -c 'CREATE EXTENSION snowflake_shards CASCADE' -c 'CREATE EXTENSION snowflake_routing CASCADE'
done

step "16 shards: 0 to 5 on north, 6 to 10 on west, 11 to 15 on south; the map says so"
while read -r server from to; do
  on "$server" -f source/scripts/demo.d/routing_shards.sql -v range="[$from,$to]"
  on control -o /dev/null -c "SELECT snowflake_fleet.set_server('$server', '$(where "$server")')" \
    -c "SELECT snowflake_fleet.assign('[$from,$to]', '$server')"
done <<END
north 0 5
west 6 10
south 11 15
END
unprivileged env PATH="$bin:$PATH" "$bin/snowflake-push-map" "$(where control)" >push.log
on control -c "SELECT server, min(shard) AS \"from\", max(shard) AS \"to\", count(*) AS shards FROM snowflake_fleet.map GROUP BY 1 ORDER BY 2"

step "PL/Proxy and postgres_fdw on control, made from the map"
on control -f source/scripts/demo.d/routing_control.sql
on control -f source/scripts/demo.d/routing_tour.sql -v bold="$bold" -v plain="$plain"

step "Four clients sign up users in shard 3, through PL/Proxy; meanwhile it moves from north to south"
echo "SELECT sign_up(snowflake.make_id('2026-01-01', 3, 0), 'client ' || :client_id);" | unprivileged tee signup.sql >/dev/null
unprivileged "$bin/pgbench" -n -p "${port[control]}" -c 4 -T 15 --max-tries=1000 -R 400 -f signup.sql >pgbench.log 2>&1 &
client=$!
sleep 4
unprivileged env PATH="$bin:$PATH" "$bin/snowflake-move-shard" --shard 3 --control "$(where control)" --to south
wait "$client" || { cat pgbench.log; die "a client failed"; }
sed -n 's/^number of transactions actually processed/users signed up/p; s/^number of failed transactions/failed/p; s/^number of transactions retried/retried at the fence/p' pgbench.log
on control -c "SELECT server, count(*) AS \"users in shard 3, through postgres_fdw\"
        FROM users JOIN snowflake_fleet.map ON shard = snowflake.shard_of(id) WHERE shard = 3 GROUP BY server"
on south -c "SELECT count(*) AS \"users in shard 3 on south\", count(DISTINCT id) AS \"distinct\", array_agg(DISTINCT snowflake.region_of(id)) AS \"minted in the regions\" FROM shard_3.users"

step "Cleaning up: the servers are stopped and their files removed"
for server in "${names[@]}"; do unprivileged "$bin/pg_ctl" stop -s -m fast -D "$server"; done
cd /
rm -rf "$demo"
