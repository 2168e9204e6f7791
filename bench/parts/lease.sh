# shellcheck shell=bash disable=SC2034,SC2154
#
# Compares a server with a region number in its settings with a server that leases its region number. On both servers
# this part of the benchmark measures:
#
# - a single call
# - calls while the lease server is stopped
# - the time from the command for a restart, a start or a failover to the first id
begin_results lease
build_and_install "$work/source/extensions/lease"
minting_servers=(static leased)
lease_port() { case $1 in lease_server) echo 5551 ;; static) echo 5552 ;; leased) echo 5553 ;; standby) echo 5554 ;; esac; }

on() {  # SERVER ARGUMENT...: runs psql on SERVER
  unprivileged env PGOPTIONS='-c client_min_messages=warning' "$bin/psql" -XqAt -v ON_ERROR_STOP=1 \
    -d "host=$work/run port=$(lease_port "$1") user=bench dbname=postgres" "${@:2}"
}
ctl() {  # SERVER COMMAND [OPTION...]
  unprivileged "$bin/pg_ctl" -s -w -D "$work/run/$1" -l "$work/run/$1.log" "${@:2}"
}
make_server() {  # SERVER SETTING...
  unprivileged "$bin/initdb" -D "$work/run/$1" -A trust -U bench --no-sync --locale=C.UTF-8 -E UTF8 >"$work/run/initdb.log"
  printf '%s\n' "listen_addresses = ''" "unix_socket_directories = '$work/run'" "port = $(lease_port "$1")" 'autovacuum = off' \
    'jit = off' "shared_preload_libraries = 'snowflake, snowflake_bench'" "snowflake.max_wait = 30s" "${@:2}" |
    unprivileged tee -a "$work/run/$1/postgresql.conf" >/dev/null
  ctl "$1" start
}
remove_servers() {
  local server
  for server in lease_server static leased standby; do
    [ ! -e "$work/run/$server/postmaster.pid" ] || ctl "$server" stop -m immediate || true
    rm -rf "${work:?}/run/$server"
  done
}
# make_pair LEASE SETTING...
make_pair() {
  remove_servers
  make_server lease_server
  on lease_server -c 'CREATE EXTENSION snowflake_fleet' -c "SELECT snowflake_fleet.add_server('leased')" -o /dev/null
  make_server static 'snowflake.region = 1' "${@:2}"
  make_server leased "snowflake.lease_conninfo = 'host=$work/run port=$(lease_port lease_server) dbname=postgres user=leased'" \
    "snowflake.leased_regions = '0,1'" "snowflake.lease = $1" 'snowflake.max_skew = 3s' "${@:2}"
  local server
  for server in "${minting_servers[@]}"; do on "$server" -f "$work/source/bench/sql/setup.sql"; done
}
milliseconds_since() { awk -v from="$1" -v to="$EPOCHREALTIME" 'BEGIN { printf "%.1f", (to - from) * 1000 }'; }
first_id() { on "$1" -o /dev/null -c 'SELECT snowflake.next_id(1)'; }

# Measures calls whose ids do not run ahead of the clock, because the layout has more ids per millisecond than a loop
# can mint.
make_pair 1h "snowflake.layout = '41/3+1/19'" 'snowflake.max_lead = 60s'
rows=$(by_form 20000 10000)
calls() { printf "%s, " "$1" "$1" "$1" "$1" "$1" "$1" "$1" "$1" "$1"; printf %s "$1"; }
cost() {  # SERVER EXPRESSION
  on "$1" -c "SELECT bench.cost('SELECT $(calls "$2") FROM (SELECT i FROM generate_series(1::bigint, $rows) AS i OFFSET 0) AS row') / ($rows * 10)"
}
for run in $(seq 0 "$(by_form 30 8)"); do
  for server in "${minting_servers[@]}"; do
    net=$(awk "BEGIN { print $(cost "$server" 'snowflake.next_id(1)') - $(cost "$server" i) }")
    [ "$run" = 0 ] || sample "$server" 'CPU ns a call' "$run" "$net"  # run 0 only fills caches
  done
done

# Measures the time to the first id after a restart, a crash and a failover. After a start, the first call on both
# servers waits until the clock has passed the stored time limit (high-water mark). The setting "snowflake.reserve" is
# the longest duration of the wait for the high-water mark.
make_pair 12s 'wal_level = replica'
for run in $(seq "$(by_form 4 2)"); do
  for server in "${minting_servers[@]}"; do
    first_id "$server"
    began=$EPOCHREALTIME
    ctl "$server" restart -m fast
    first_id "$server"
    sample "$server" 'ms, restart' "$run" "$(milliseconds_since "$began")"

    ctl "$server" stop -m immediate
    began=$EPOCHREALTIME
    ctl "$server" start
    first_id "$server"
    sample "$server" 'ms, start after a crash' "$run" "$(milliseconds_since "$began")"

    rm -rf "$work/run/standby"
    unprivileged "$bin/pg_basebackup" -h "$work/run" -p "$(lease_port "$server")" -U bench -D "$work/run/standby" -c fast -R
    echo "port = $(lease_port standby)" | unprivileged tee -a "$work/run/standby/postgresql.conf" >/dev/null
    ctl standby start
    first_id "$server"
    ctl "$server" stop -m immediate
    began=$EPOCHREALTIME
    ctl standby promote
    first_id standby
    sample "$server" 'ms, failover' "$run" "$(milliseconds_since "$began")"
    ctl standby stop -m immediate
    ctl "$server" start
  done
done

# Measures calls while the lease server is stopped for half of the duration of a lease. The lease is renewed just before
# the lease server is stopped.
on leased -o /dev/null -c 'SELECT snowflake.next_id(1)'
until [ "$(on leased -c 'SELECT length_ms < 20000 AND until - clock_timestamp() > '"'11 s'"' FROM snowflake.lease')" = t ]; do sleep 0.2; done
ctl lease_server stop -m immediate
for server in "${minting_servers[@]}"; do
  read -r longest_ns rate <<<"$(on "$server" -F ' ' -c "SELECT max(up_to_ns), sum(calls) / 3 FROM bench.latency('snowflake.next_id(int)',
    ARRAY(SELECT i FROM generate_series(0, 63) AS i)::bigint[], 3)")"
  sample "$server" 'calls/s, lease server stopped' 1 "$rate"
  sample "$server" 'ms, longest call, lease server stopped' 1 "$(awk "BEGIN { print $longest_ns / 1e6 }")"
  began=$EPOCHREALTIME
  first_id "$server"
  sample "$server" 'ms, first id of a session, lease server stopped' 1 "$(milliseconds_since "$began")"
done
remove_servers
