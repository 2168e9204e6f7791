# shellcheck shell=bash
#
# Contains the stages of scripts/test, which sources this file. Each stage runs in a separate process.

# use_tree NAME: sets $tree to the copy NAME of the sources, which the first call makes. Each compiler builds in a
# separate copy of the sources. Each stage that starts servers has a separate copy of the sources, because the test
# files have fixed names.
use_tree() {
  tree=$work/$1
  [[ $1 != run/* ]] || tree=$runs/${1#run/}
  once "tree-${1//\//-}" stage_sources "$tree"
}

# build COMPILER: builds the extension with COMPILER, in the copy of the sources for this compiler.
build() {
  local compiler=$1 log=$logs/build-$1 tree
  local flags=(WERROR=-Werror)
  use_tree "$compiler"
  [ "$compiler" != clang++ ] || flags+=(CC=clang CXX=clang++ PRECOMPILED=object)
  logged "$log" unprivileged make -C "$tree" -s -j"$(nproc)" PG_CONFIG="$pg_config" "${flags[@]}" all
  record build "$compiler" "$status" "$log" $((status == 0)) 0
  [ "$status" = 0 ]
}

# Builds the extension with the compiler that also builds the Debian packages.
build_to_ship() { build g++; }

# Installs the extension into $tested, a copy of the PostgreSQL server for which the extension was built.
install_into_copy() {
  once shipped build_to_ship && once installed install_generator
}
install_generator() {
  logged "$logs/install" unprivileged make -C "$work/g++" -s PG_CONFIG="$tested" WERROR=-Werror install
  [ "$status" = 0 ] || { record build "make install" "$status" "$logs/install" 0 1; return 1; }
}

# make_beside COMPILER NAME TARGET...: builds the extension extensions/NAME, and writes the log $logs/NAME-COMPILER.
make_beside() {
  local compiler=$1 name=$2 tree flags=(WERROR=-Werror)
  shift 2
  use_tree "$compiler"
  [ "$compiler" != clang++ ] || flags+=(CC=clang CXX=clang++ PRECOMPILED=object)
  logged "$logs/$name-$compiler" unprivileged make -C "$tree/extensions/$name" -s -j"$(nproc)" PG_CONFIG="$tested" \
    "${flags[@]}" "$@"
  record "$name" "$compiler" "$status" "$logs/$name-$compiler" $((status == 0)) 0
  [ "$status" = 0 ]
}

# install_beside NAME: builds the extension extensions/NAME and installs it into the PostgreSQL server of the tests.
install_beside() {
  unset SNOWFLAKE_PRELOAD    # leases need shared_preload_libraries
  install_into_copy && once "installed-$1" make_beside g++ "$1" all install
}

stage_build() {
  once shipped build_to_ship || true
  build clang++ || true
}

stage_structure() {
  local log=$logs/structure
  install_missing patch perl
  once shipped build_to_ship || return 0
  logged "$log" "$work/g++/scripts/structure" "$work"/*/snowflake.so
  count_tap "$log"
  record structure "sources and library" "$status" "$log" "$passed" "$failed"
}

stage_lint() {
  local log=$logs/lint
  logged "$log" "$source_dir/scripts/lint"
  if [ "$status" = 77 ]; then
    say "lint       did not run: clang-format 14, clang-tidy 14 and shellcheck 0.9 are not available here"
    return 0
  fi
  count_tap "$log"
  record lint "format and findings" "$status" "$log" "$passed" "$failed"
}

stage_release() {
  local log=$logs/release built=()
  [ ! -e "$work/shipped.result" ] || ! once shipped build_to_ship || built=(--built "$work/g++")
  logged "$log" env PG_CONFIG="$pg_config" "$source_dir/scripts/release" "${built[@]}"
  count_tap "$log"
  record release "meta data, archive, same build twice" "$status" "$log" "$passed" "$failed"
}

stage_core() {
  local tree target log
  use_tree core
  # Fixes the addresses of mappings, because ThreadSanitizer of gcc 12 and clang 14 fails if the kernel randomizes them
  # too much.
  local fixed=()
  ! setarch "$(uname -m)" -R true 2>/dev/null || fixed=(setarch "$(uname -m)" -R)
  local targets=(check-headers check check-asan check-tsan) arguments=()
  if [ -n "${names[core]:-}" ]; then
    targets=(check)
    arguments=(GTEST_ARGS="--gtest_filter=${names[core]// /:}")
  fi
  for target in "${targets[@]}"; do
    log=$logs/core-$target
    logged "$log" unprivileged ${fixed[@]+"${fixed[@]}"} make -C "$tree/test/core" -s -j"$(nproc)" "$target" \
      ${arguments[@]+"${arguments[@]}"}
    count_gtest "$log"
    [ "$target" != check-headers ] || passed=$((status == 0))
    record core "make $target" "$status" "$log" "$passed" "$failed"
  done
}

jobs=$((2 * $(nproc)))    # runs two TAP tests for each CPU, because TAP tests mostly wait

# installcheck DIRECTORY MAKE_ARGUMENT...: runs `make installcheck` in DIRECTORY below the copied sources $tree.
installcheck() {
  local directory=$1
  shift
  unprivileged make -C "$tree/$directory" -s PG_CONFIG="$tested" WERROR=-Werror "$@" installcheck
}

# sql_tests STAGE DIRECTORY MAKE_ARGUMENT...: runs pg_regress in DIRECTORY below the copied sources $tree.
sql_tests() {
  local stage=$1 directory=$2 log=$logs/$1-regress
  shift 2
  logged "$log" installcheck "$directory" TAP_TESTS= "$@"
  count_regress "$log"
  cat "$tree/$directory/regression.diffs" >>"$log" 2>/dev/null || true
  record "$stage" "pg_regress" "$status" "$log" "$passed" "$failed"
}

# tap_tests STAGE DIRECTORY WHAT MAKE_ARGUMENT...: runs prove in DIRECTORY below the copied sources $tree.
tap_tests() {
  local stage=$1 directory=$2 what=$3 log=$logs/$1-tap raw=$work/raw/$1
  shift 3
  unprivileged mkdir -p "$raw"
  logged "$log" installcheck "$directory" REGRESS= PROVE_FLAGS="-j$jobs" PERL_TEST_HARNESS_DUMP_TAP="$raw" "$@"
  find "$raw" -type f -exec cat {} + >"$log.raw"
  count_tap "$log.raw"
  [ "$status$failed" = 00 ] || cp -r "$tree/$directory/tmp_check/log" "$log.servers" 2>/dev/null || true
  record "$stage" "$what" "$status" "$log" "$passed" "$failed"
}

stage_regress() {
  local tree only=()
  install_into_copy || return 0
  use_tree run/regress
  [ -z "${names[regress]:-}" ] || only=(REGRESS="${names[regress]}")
  sql_tests regress . ${only[@]+"${only[@]}"}
}

stage_tap() {
  local tree files=${names[tap]:-}
  install_into_copy || return 0
  use_tree run/tap
  cp -p "$work/g++"/snowflake--*.sql "$tree"    # for a TAP test that compares the SQL scripts with the installed ones
  [ -n "$files" ] || files=$(cd "$tree" && echo t/*.pl)
  tap_tests tap . "$(wc -w <<<"$files") of $(find "$tree/t" -name '*.pl' | wc -l) files in t/" PROVE_TESTS="$files"
}

# Tests the extension extensions/$1: builds it by both compilers, checks the exports and dependencies of its library,
# and runs its SQL and TAP tests.
beside() {
  local name=$1 log=$logs/$1-structure libraries tree
  install_beside "$name" || return 0
  make_beside clang++ "$name" all || true
  libraries=("$work"/*/extensions/"$name"/*.so)
  if [ -e "${libraries[0]}" ]; then  # an extension without C code has no library
    install_missing patch perl
    logged "$log" "$work/g++/scripts/structure" "${libraries[@]}"
    count_tap "$log"
    record "$name" "sources and library" "$status" "$log" "$passed" "$failed"
  fi
  use_tree "run/$name"
  [ ! -d "$tree/extensions/$name/sql" ] || sql_tests "$name" "extensions/$name"
  tap_tests "$name" "extensions/$name" TAP
}

stage_alias() {
  install_missing libssl-dev openssl nodejs python3
  beside alias
}

stage_lease() {
  install_missing libpq-dev
  beside lease
}

stage_routing() {
  local tree
  install_missing libpq-dev libssl-dev python3-psycopg
  install_beside lease && install_beside alias || return 0
  # Compiles the Python code of snowflake-move-shard once, because hundreds of tests start this program, and the program
  # does not store its bytecode.
  use_tree run/routing
  unprivileged /usr/bin/python3 -m compileall -q "$tree/extensions/routing/mover"
  beside routing
  local log=$logs/routing-chaos
  logged "$log" "$source_dir/scripts/chaos" --moves --seed 7 --seconds 25 --installed "$tested"
  count_tap "$log"
  record routing "a shard that moves under faults" "$status" "$log" "$passed" "$failed"
}

# Tests the metrics with the exporters and Prometheus from unpacked Debian packages. The exporters and Prometheus listen
# only on loopback.
stage_metrics() {
  local tree programs=$work/programs chromium=
  install_missing libpq-dev perl
  install_beside lease || return 0
  mkdir "$programs"
  unpack_packages "$programs" prometheus prometheus-postgres-exporter prometheus-sql-exporter check-pgactivity check-postgres
  # In newer Debian suites, promtool is in a separate package.
  [ -x "$programs/usr/bin/promtool" ] || unpack_packages "$programs" promtool
  if { is_installed chromium || apt_knows chromium; } && (install_missing chromium fonts-dejavu-core); then chromium=$(command -v chromium)
  else say "metrics    did not check the report: chromium is not available here"
  fi
  use_tree run/metrics
  tap_tests metrics . "exporters, rules, alerts, report, checks" PROVE_TESTS="test/metrics/*.pl" \
    PATH="$programs/usr/bin:$programs/usr/lib/nagios/plugins:$PATH" SNOWFLAKE_CHROMIUM="$chromium"
}

# Runs the programs in test/clients/ against one server. The environment variable SNOWFLAKE_CLIENTS lists the client
# programs to run.
stage_clients() {
  local tree log=$logs/clients client wanted got=()
  install_into_copy || return 0
  use_tree run/clients
  read -ra wanted <<<"${names[clients]:-${clients_in_ci[*]}}"
  for client in "${wanted[@]}"; do
    if (install_client "$client" "$tree") >"$log-$client" 2>&1; then got+=("$client")
    elif [[ " ${clients_in_ci[*]} " == *" $client "* ]]; then record clients "$client is not available" 1 "$log-$client" 0 1
    else say "clients    did not run $client, which is not available here"
    fi
  done
  [ ${#got[@]} != 0 ] || return 0
  tap_tests clients . "${#got[@]} drivers, ORMs and tools" PROVE_TESTS="test/clients/*.pl" SNOWFLAKE_CLIENTS="${got[*]}"
}

# torture_test NAME WHAT ARGUMENT...
torture_test() {
  local log=$logs/$1 what=$2
  shift 2
  logged "$log" "$source_dir/scripts/torture" "$@" --short --installed "$tested"
  count_tap "$log"
  record torture "$what" "$status" "$log" "$passed" "$failed"
}

stage_torture() {
  install_into_copy || return 0
  torture_test torture "a short run with a fixed seed"
  install_missing libpq-dev
  install_beside lease || return 0
  torture_test torture-fleet "the same of a fleet" --fleet
}
