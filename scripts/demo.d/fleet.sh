# shellcheck shell=bash disable=SC2154
#
# Runs scripts/demo --fleet, which sources this file. In this demo three servers mint ids, one server is cloned, and
# another fails over. The demo counts all ids and duplicate ids, first without leases and then with leases. When the
# demo ends, it leaves no files or processes.

step "Building the lease server's extension and the worker that leases"
build_and_install "$demo/source/extensions/lease"
bin=$("$pg_config" --bindir)
export PGHOST=$demo PGDATABASE=postgres PGOPTIONS='-c client_min_messages=warning'
[ "$(id -u)" != 0 ] || export PGUSER=postgres
declare -A port=([lease_server]=5501 [north]=5502 [west]=5503 [south]=5504 [clone]=5505 [standby]=5506)

# on SERVER ARGUMENT...: runs psql with each ARGUMENT on SERVER.
on() {
  local server=$1
  shift
  unprivileged "$bin/psql" -X -q -P footer=off -v ON_ERROR_STOP=1 -p "${port[$server]}" "$@"
}

# launch SERVER [VARIABLE=VALUE...]
launch() {
  local server=$1
  shift
  unprivileged touch "$server.log"
  unprivileged env "$@" "$bin/pg_ctl" start -s -w -D "$server" -l "$server.log"
}
halt() { unprivileged "$bin/pg_ctl" stop -s -m "$2" -D "$1"; }

# made SERVER SETTING...: makes a server from the data directory that initdb made once. The server is not started.
made() {
  local server=$1
  shift
  unprivileged cp -a template "$server"
  printf '%s\n' "port = ${port[$server]}" "$@" | unprivileged tee -a "$server/postgresql.conf" >/dev/null
}
copied() {  # SERVER SOURCE [OPTION...]: copies the server SOURCE to SERVER while SOURCE runs
  unprivileged "$bin/pg_basebackup" -p "${port[$2]}" -D "$1" -c fast "${@:3}"
  echo "port = ${port[$1]}" | unprivileged tee -a "$1/postgresql.conf" >/dev/null
}

# mint COUNT SERVER...: mints COUNT ids on each server, on all servers at the same time. The ids are minted over one to
# two seconds, as by real clients.
mint() {
  local count=$1 server clients=()
  shift
  for server; do
    on "$server" -At -c "SELECT snowflake.next_id(g % 4) FROM generate_series(1, $count) AS g,
      LATERAL (SELECT CASE WHEN g % 20 = 0 THEN pg_sleep(0.001) END) AS pause" >>"ids/$server" & clients+=($!)
  done
  for server in "${clients[@]}"; do wait "$server" || die "a client failed"; done
}

# begins TEXT: prints what the next step of the demo does, without a line end. The function counted() adds the numbers
# of new ids and duplicates to the printed line.
begins() { printf '  %-66s' "$1"; }
counted() {
  local ids again
  ids=$(cat ids/* | wc -l)
  again=$((ids - $(sort -u ids/* | wc -l)))
  numbers $((ids - ids_before)) $((again - again_before))
  ids_before=$ids again_before=$again
}
numbers() { printf ' %9s ids %9s twice\n' "$1" "$2" | grouped_numbers; }
grouped_numbers() { sed -E 's/ ([0-9 ]*[0-9])([0-9]{3}) (ids|twice)/\1,\2 \3/g'; }

# story SETTING...: runs all steps of the demo on servers with the settings SETTING.
story() {
  local server
  ids_before=0 again_before=0
  rm -rf ids
  mkdir ids
  begins 'three servers at once'
  for server in north west south; do
    settings=("${@//SERVER/$server}")
    made "$server" "${settings[@]//REGIONS/${regions[$server]:-}}"
    launch "$server"
    on "$server" -c 'CREATE EXTENSION snowflake'
  done
  mint 20000 north west south
  counted

  [ -z "$with_leases" ] || without_lease_server

  begins 'a clone of north beside its original'
  copied clone north
  launch clone
  mint 20000 north clone
  counted

  # The standby has received all WAL that was written before its connection is cut. After the promotion, the clock of
  # the standby is 5 s behind.
  begins 'a failover of west, its tail lost, the clock 5 s behind'
  copied standby west -R
  launch standby
  mint 20000 west
  halt standby fast
  mint 40000 west
  halt west immediate
  launch standby LD_PRELOAD="$demo/clock.so" SNOWFLAKE_CLOCK="$demo/behind"
  unprivileged "$bin/pg_ctl" promote -s -w -D standby
  mint 20000 standby
  counted
  begins 'in all'
  printf '%s' "$bold"
  numbers "$ids_before" "$again_before"
  printf '%s' "$plain"
}

# Mints leased ids while the lease server is stopped. In this demo, the first lease of each server lasts longer than the
# whole measurement.
without_lease_server() {
  local gone second
  halt lease_server immediate
  for gone in 5 10 15 20 25; do
    begins "the lease server is gone, for $gone s by now; north mints on"
    for ((second = 0; second < 5; ++second)); do mint 1000 north; sleep 0.8; done
    counted
  done
  begins 'it is back'
  launch lease_server
  mint 20000 north west south
  counted
}

gcc -O2 -fPIC -shared -o clock.so "$demo/source/t/lib/Snowflake/clock.c" -ldl
perl -e 'print pack "q2", -5e9, 0' >behind
unprivileged "$bin/initdb" -D template --auth=trust --encoding=UTF8 --no-locale --no-sync >initdb.log
unprivileged tee -a template/postgresql.conf >/dev/null <<END
listen_addresses = ''
unix_socket_directories = '$demo'
shared_preload_libraries = 'snowflake'
snowflake.max_wait = 30s
END

with_leases=
step "Without leases: every server mints in region 0, as it is by default"
story
for server in north clone south standby; do halt "$server" immediate; rm -rf "$server"; done
rm -rf west

with_leases=yes
step $'\nWith leases: a lease server, and on each server snowflake.lease_conninfo and two regions of its own'
made lease_server
launch lease_server
on lease_server -o /dev/null -c 'CREATE EXTENSION snowflake_fleet' \
  -c "SELECT snowflake_fleet.add_server(s) FROM unnest(ARRAY['north', 'west', 'south']) AS s"
declare -A regions=([north]='0,1' [west]='2,3' [south]='4,5')
story "snowflake.lease_conninfo = 'host=$demo port=${port[lease_server]} dbname=postgres user=SERVER'" "snowflake.leased_regions = 'REGIONS'"

step $'\nWho holds what, in the lease server: a clone has another region of its server, a lost one is kept until its lease ends'
on lease_server -c "SELECT region, server, state, date_trunc('second', until) AS until, incarnation FROM snowflake_fleet.regions ORDER BY 1"
step "The log of the promoted standby"
grep -h 'snowflake: ' standby.log | tail -3 | cut -c1-150
[ "$again_before" = 0 ] || die "$again_before ids were minted twice under leases"

step $'\nCleaning up: the servers are stopped and their files removed. Three servers of your own: doc/fleet.md'
for server in north clone south standby lease_server; do halt "$server" immediate; done
cd /
rm -rf "$demo"
