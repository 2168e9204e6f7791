# shellcheck shell=bash disable=SC2154
#
# Starts three servers for the parts of the benchmark that measure several servers. One server has the control database
# and routes queries, and two servers have the data.

fleet_servers=(control a b)
region_of() { case $1 in control) echo 1 ;; a) echo 2 ;; b) echo 3 ;; esac; }
where() { echo "host=$work/run port=$((5540 + $(region_of "$1"))) user=bench dbname=postgres"; }

# on SERVER ARGUMENT...: runs psql with each ARGUMENT on SERVER.
on() {
  local server=$1
  shift
  unprivileged env PGOPTIONS='-c client_min_messages=warning' "$bin/psql" -XqAt -v ON_ERROR_STOP=1 -d "$(where "$server")" "$@"
}

start_fleet() {
  local server
  build_and_install "$work/source/extensions/lease"
  build_and_install "$work/source/extensions/routing"
  for server in "${fleet_servers[@]}"; do
    unprivileged "$bin/initdb" -D "$work/run/$server" -A trust -U bench --no-sync --locale=C.UTF-8 -E UTF8 >"$work/run/initdb.log"
    unprivileged tee -a "$work/run/$server/postgresql.conf" >/dev/null <<END
listen_addresses = ''
unix_socket_directories = '$work/run'
port = $((5540 + $(region_of "$server")))
shared_preload_libraries = 'snowflake'
snowflake.region = $(region_of "$server")
wal_level = logical
max_wal_size = 4GB
END
    unprivileged "$bin/pg_ctl" -s -D "$work/run/$server" -l "$work/run/$server.log" -w start
    on "$server" -c 'CREATE EXTENSION snowflake_shards CASCADE' -c 'CREATE EXTENSION snowflake_routing CASCADE'
  done
  on control -o /dev/null -c "SELECT snowflake_fleet.set_server('a', '$(where a)'), snowflake_fleet.set_server('b', '$(where b)')"
}

stop_fleet() {
  local server
  for server in "${fleet_servers[@]}"; do
    [ ! -e "$work/run/$server" ] || unprivileged "$bin/pg_ctl" -s -D "$work/run/$server" -m immediate -w stop 2>/dev/null || true
    rm -rf "$work/run/$server"
  done
}
