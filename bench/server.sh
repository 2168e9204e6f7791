# shellcheck shell=bash
#
# Starts a private server for measurements, and contains functions that all parts of the benchmark use. bench/run
# sources this file.

# prepare [EXTENSION...]: makes a private copy of PostgreSQL. Installs the released build of the extension, the
# functions in bench/extension for comparison, and the extensions in the directories EXTENSION.
#
# shellcheck disable=SC2120
prepare() {
  local extension
  private_postgres "$work/pg"
  [ -e "$work/source" ] || stage_sources "$work/source"
  build_and_install "$work/source"
  for extension in bench/extension "$@"; do build_and_install "$work/source/$extension"; done
  bin=$("$pg_config" --bindir)
  place=$work/run
  mkdir "$place" "$work/files"
  [ "$(id -u)" != 0 ] || chown postgres: "$place" "$work/files"
}

# start_server [SETTING...]: starts a server with a new data directory. Each part of the benchmark needs a new data
# directory, because an earlier part may have minted ids ahead of the clock.
start_server() {
  stop_server
  rm -rf "$place/data"
  unprivileged "$bin/initdb" -D "$place/data" -A trust -U bench --no-sync --locale=C.UTF-8 -E UTF8 \
    >"$place/initdb.log"
  unprivileged tee -a "$place/data/postgresql.conf" >/dev/null <<END
listen_addresses = ''
unix_socket_directories = '$place'
shared_preload_libraries = 'snowflake, snowflake_bench'
shared_buffers = 1GB
min_wal_size = 2GB
max_wal_size = 8GB
checkpoint_timeout = 1h
autovacuum = off
jit = off
synchronous_commit = off
$(printf '%s\n' "$@")
END
  unprivileged "$bin/pg_ctl" -s -D "$place/data" -l "$place/log" -w start
  PGOPTIONS='-c client_min_messages=warning' sql -f "$work/source/bench/sql/setup.sql"
}

stop_server() {
  [ -e "${place:-}/data/postmaster.pid" ] || return 0
  unprivileged "$bin/pg_ctl" -s -D "$place/data" -m immediate -w stop || true
}

# sql ARGUMENT...: runs psql as the superuser of the private server. PGOPTIONS contains settings that the SQL files in
# bench/sql read.
sql() {
  unprivileged env PGOPTIONS="${PGOPTIONS:-}" "$bin/psql" -XqAt -F $'\t' -v ON_ERROR_STOP=1 \
    -h "$place" -U bench -d postgres "$@"
}

# begin_results PART creates the result file of a part. The function `sample SUBJECT METRIC RUN VALUE` adds a value that
# the shell measured. The function take_samples adds the values that SQL stored in the table bench.sample to the result
# file.
begin_results() {
  results=$out/results/$1.tsv
  printf 'subject\tmetric\trun\tvalue\n' >"$results"
}
sample() {
  [ -n "$4" ] || die "nothing was measured for \"$1\", $2"
  printf '%s\t%s\t%s\t%s\n' "$@" >>"$results"
}
take_samples() {
  sql -c 'SELECT * FROM bench.sample ORDER BY subject, metric, run' >>"$results"
}

# tps ARGUMENT...: prints the transactions per second that pgbench reports, without the time for connections. Prints
# "duplicate" if a client of pgbench stopped because of a duplicate key.
tps() {
  if unprivileged "$bin/pgbench" -h "$place" -U bench -n -M prepared "$@" postgres \
    >"$work/pgbench.out" 2>"$work/pgbench.err"; then
    sed -n 's/^tps = \([0-9.]*\).*/\1/p' "$work/pgbench.out"
  elif grep -q 'duplicate key' "$work/pgbench.err"; then
    echo duplicate
  else
    cat "$work/pgbench.err" >&2
    return 1
  fi
}

# busy_cpus: prints how many CPUs are in use before the measurement, on average over one second.
busy_cpus() {
  { head -1 /proc/stat; sleep 1; head -1 /proc/stat; } | awk -v cpus="$(nproc)" '
    { idle = $5 + $6; all = 0; for (i = 2; i <= NF; i++) all += $i
      if (NR == 1) { idle0 = idle; all0 = all } }
    END { printf "%.2f", cpus * (1 - (idle - idle0) / (all - all0)) }'
}

# note_when PART BUSY SECONDS: writes a line about PART to results/when.tsv, because parts of the benchmark can be
# measured separately. Stores the commit, the date, whether the run is full or quick, the number of CPUs that other
# programs use (BUSY), and the duration (SECONDS).
note_when() {
  local when=$out/results/when.tsv
  touch "$when"
  { grep -v "^$1	" "$when" || true; printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$(by_form full quick)" \
    "$(commit_of "$source_dir")" "$(date -u '+%Y-%m-%d %H:%M UTC')" "$2" "$3"; } >"$when.new"
  mv "$when.new" "$when"
}

# commit_of DIRECTORY: prints the commit of the git checkout DIRECTORY, and whether files differ from this commit.
commit_of() {
  local changed
  changed=$(git -C "$1" status --porcelain --untracked-files=no -- . ':!bench/RESULTS.md' ':!README.md' 2>/dev/null) || { echo unknown; return; }
  echo "$(git -C "$1" log -1 --format=%h)${changed:+ and changes}"
}

describe_machine() {
  {
    echo "processor	$(sed -n 's/^model name\s*: //p' /proc/cpuinfo | head -1), $(nproc) CPUs, $(
      if grep -q '^flags.* hypervisor' /proc/cpuinfo; then echo 'a virtual machine'; else echo 'bare metal'; fi)"
    echo "clock source	$(cat /sys/devices/system/clocksource/clocksource0/current_clocksource 2>/dev/null || echo unknown)"
    echo "memory	$(awk '/^MemTotal/ {printf "%.0f GiB", $2 / 1048576}' /proc/meminfo)"
    echo "system	$(sed -n 's/^PRETTY_NAME="\(.*\)"$/\1/p' /etc/os-release), Linux $(uname -r | sed "s,-.*,,")"
    echo "PostgreSQL	$("$pg_config" --version | sed 's/^PostgreSQL //')"
    echo "compiler	$(g++ --version | head -1)"
    echo "flags	$(unprivileged make -C "$work/source" -nB PG_CONFIG="$pg_config" src/pg/functions/mint.o |
      grep -oE ' -(O[^ ]*|std=[^ ]*|m[^ ]*|f(stack|no-omit|lto|no-plt)[^ ]*)' | sort -u | tr -d '\n')"
    echo "extension	$(sed -n "s/^default_version = '\(.*\)'/\1/p" "$source_dir/snowflake.control"), commit $(commit_of "$source_dir")"
  } >"$out/results/machine.tsv"
}
