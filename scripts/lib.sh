# shellcheck shell=bash
#
# Contains functions that all scripts share: packages, an unprivileged user, and a private copy of PostgreSQL. A script
# that sources lib.sh must have called `set -euo pipefail`. The functions install missing packages, but do not change
# the system's PostgreSQL otherwise.

source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# The variable $work contains the path of the script's temporary directory, or is empty. The value of $work does not
# come from an environment variable of the caller.
work=''

# Sets one fixed locale, because the scripts parse the output of tools. Unsets environment variables that select a
# PostgreSQL server or pass options to make.
export LC_ALL=C.UTF-8
for variable in "${!PG@}"; do [ "$variable" = PG_CONFIG ] || unset "$variable"; done
unset variable MAKEFLAGS MFLAGS MAKELEVEL

say() { printf '%s\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

can_be_root() { [ "$(id -u)" = 0 ] || command -v sudo >/dev/null; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif can_be_root; then sudo "$@"
  else die "\"$*\" needs root, and sudo is not installed"
  fi
}

# Runs a command as an unprivileged user, because PostgreSQL refuses to run as root. If the script runs as root, the
# unprivileged user is the account postgres, which Debian's package creates. If $temporary is set, temporary files are
# created in the directory $temporary, because killed tests leave socket directories behind.
temporary=''
unprivileged() {
  [ -z "$temporary" ] || local -x TMPDIR=$temporary
  if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi
}

# private_directory TEMPLATE [PARENT]: makes a new directory that the unprivileged user owns, with a subdirectory tmp.
# The default of PARENT is /var/tmp, because /tmp may be in memory.
private_directory() {
  local directory
  directory=$(mktemp -d "${2:-/var/tmp}/$1")
  mkdir "$directory/tmp"
  [ "$(id -u)" != 0 ] || chown postgres: "$directory" "$directory/tmp"
  echo "$directory"
}

# in_memory GIB: prints /dev/shm if GIB gibibytes are free there, twice as much memory is available, and the
# unprivileged user may run programs there.
in_memory() {
  local kib=$(($1 << 20)) options limit
  options=$(findmnt -nro OPTIONS -T /dev/shm 2>/dev/null) && [[ ,$options, != *,noexec,* ]] || return 1
  unprivileged test -w /dev/shm -a -x /dev/shm || return 1
  [ "$(df -k --output=avail /dev/shm | tail -1)" -ge "$kib" ] && [ "$(df --output=iavail /dev/shm | tail -1)" -ge 200000 ] || return 1
  [ "$(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo)" -ge $((2 * kib)) ] || return 1
  for limit in /sys/fs/cgroup/memory{.max,/memory.limit_in_bytes}; do    # the memory limit of a container
    [ ! -r "$limit" ] || [ "$(<"$limit")" = max ] || [ "$(<"$limit")" -ge $((kib << 11)) ] || return 1
  done
  echo /dev/shm
}

# unpack_packages DIRECTORY PACKAGE...: unpacks Debian packages without installing them, because an installed package
# would start its services.
unpack_packages() {
  local directory=$1 package
  shift
  for package in "$@"; do
    apt_knows "$package" || die "apt has no package $package"
    (cd "$directory" && apt-get download -qq "$package" >/dev/null 2>&1) || die "could not download $package"
  done
  for package in "$directory"/*.deb; do dpkg-deb -x "$package" "$directory"; done
  rm -f "$directory"/*.deb
}

# Stops all servers whose data directories are below the directory $1, by an immediate shutdown.
stop_servers_below() {
  local pid_file
  [ -d "$1" ] || return 0
  find "$1" -name postmaster.pid 2>/dev/null | while IFS= read -r pid_file; do
    unprivileged "$("$pg_config" --bindir)/pg_ctl" stop -s -m immediate -D "${pid_file%/*}" || true
  done >/dev/null 2>&1
}

# candidate PACKAGE: prints the version that apt would install, or nothing if apt does not have the package.
candidate() { apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: \([^(].*\)/\1/p'; }

is_installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# apt_knows PACKAGE: succeeds if apt can install PACKAGE. If apt does not know PACKAGE, apt_knows() runs apt-get update
# and tries again, because a new system has no package lists.
apt_knows() {
  command -v apt-cache >/dev/null || return 1
  [ -n "$(candidate "$1")" ] || { refresh_lists && [ -n "$(candidate "$1")" ]; }
}

# Runs apt-get update, at most once in a run of the script. If apt cannot read a package repository, refresh_lists()
# still succeeds, because another repository may have the package.
lists_are_new=''
refresh_lists() {
  [ -z "$lists_are_new" ] || return 0
  can_be_root || return 0
  lists_are_new=yes
  alone update -qq >/dev/null || say "apt-get update had errors; continuing with the lists that it read"
}

# works PACKAGE: succeeds if the programs or libraries that the scripts need from PACKAGE work on this machine. PACKAGE
# may be installed from another source than Debian, and an installation by apt may have been interrupted.
works() {
  case $1 in
    perl) perl -MTest::More -MTime::HiRes -MFile::Temp -MGetopt::Long -e 1 ;;
    libipc-run-perl) perl -MIPC::Run -e 1 ;;
    libdbd-pg-perl) perl -MDBD::Pg -e 1 ;;
    g++ | make | patch | unzip | openssl | flex | lcov | jq) command -v "$1" ;;
    shellcheck | clang-format-14 | clang-tidy-14 | clang | pkg-config) command -v "$1" ;;
    *) false ;;
  esac >/dev/null 2>&1
}

# install_missing PACKAGE...: installs the packages that are missing. If no package is missing, install_missing() does
# not call apt.
install_missing() {
  local package missing=()
  for package in "$@"; do
    is_installed "$package" || works "$package" || missing+=("$package")
  done
  [ ${#missing[@]} = 0 ] && return
  command -v apt-get >/dev/null || die "these packages are missing, and there is no apt-get to install them: ${missing[*]}"
  can_be_root || die "these packages are missing, and installing them needs root or sudo: ${missing[*]}"
  say "installing: ${missing[*]}"
  refresh_lists
  local apt_log
  apt_log=$(mktemp -p "${work:-${TMPDIR:-/tmp}}")
  if ! alone install -y -qq --no-install-recommends "${missing[@]}" >"$apt_log"; then
    tail -20 "$apt_log" >&2
    rm -f "$apt_log"
    die "could not install: ${missing[*]}"
  fi
  rm -f "$apt_log"
}

# The time in seconds that the scripts wait until other programs release apt's lock.
apt_timeout=1800

# alone ARGUMENT...: runs apt-get as root. If another program uses apt, the function alone() prints a message and waits.
# A lock on /var/lib/dpkg prevents other scripts of this project from using apt at the same time. The function alone()
# does not check the locks of other programs. If another program uses apt at this moment, apt-get fails with a message
# that names the lock.
alone() {
  # shellcheck disable=SC2016
  as_root bash -euc '
    until=$((SECONDS + $1))
    shift
    exec 9</var/lib/dpkg
    flock --nonblock 9 || {
      echo "waiting for another script that installs packages" >&2
      flock --timeout "$((until - SECONDS))" 9 || { echo "error: the other script did not end in time" >&2; exit 1; }
    }
    # The file $drop_in prevents the server package of Debian from creating a cluster at its installation.
    drop_in=/etc/postgresql-common/createcluster.d/snowflake-scripts.conf
    log=$(mktemp)
    trap '\''rm -f "$log" "$drop_in"; rmdir -p --ignore-fail-on-non-empty "${drop_in%/*}"'\'' EXIT
    mkdir -p "${drop_in%/*}"
    echo "create_main_cluster = false" >"$drop_in"
    said=""
    while :; do
      status=0
      # Closes file descriptor 9 (9<&-), because a service that a package starts must not inherit the lock.
      DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=0 "$@" >"$log" 2>&1 9<&- || status=$?
      [ $status != 0 ] && grep -q "^E: Could not get lock" "$log" || break
      [ $SECONDS -lt $until ] || { echo "error: another program kept apt locked" >&2; break; }
      [ -n "$said" ] || { echo "waiting for another program that uses apt: $(grep -m1 "^E: Could not get lock" "$log")" >&2; said=yes; }
      sleep 2
    done
    cat "$log"
    exit $status' alone "$apt_timeout" "$@"
}

# Installs make, and the compiler that PGXS calls.
install_build_tools() {
  choose_postgres
  install_missing g++ make
  make_flags=()
}

. "$source_dir/scripts/postgres.sh"

# stage_sources DIRECTORY: copies the sources without build output into DIRECTORY, for the unprivileged user.
stage_sources() {
  mkdir -p "$1"
  if git -C "$source_dir" rev-parse --git-dir >/dev/null 2>&1; then
    (cd "$source_dir" && git ls-files -z --cached --others --exclude-standard |
      while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
      tar --null -T - -cf -) | tar -xf - -C "$1"
  else
    tar -C "$source_dir" --exclude=.git --exclude=build --exclude='*.o' --exclude='*.bc' --exclude='*.so' --exclude=tmp_check \
      -cf - . | tar -xf - -C "$1"
  fi
  [ "$(id -u)" != 0 ] || chown -R postgres: "$1"
}

# private_postgres DIRECTORY: copies the server of $pg_config into DIRECTORY, and sets $pg_config to the copy's
# pg_config. `make install` changes only the copied server, because PostgreSQL finds its files relative to its programs.
private_postgres() {
  local tree=$1 dir entry
  for dir in $("$pg_config" --bindir) $("$pg_config" --pkglibdir) $("$pg_config" --sharedir); do
    [ -e "$tree$dir" ] && continue
    mkdir -p "$tree${dir%/*}"
    cp -a "$dir" "$tree${dir%/*}/"
  done
  # The libraries and headers of the server are only read, so they become symbolic links. In a server that was built
  # from source, pkglibdir is inside libdir.
  for dir in $("$pg_config" --libdir) $("$pg_config" --includedir); do
    mkdir -p "$tree${dir%/*}"
    [ -e "$tree$dir" ] || { ln -s "$dir" "$tree$dir"; continue; }
    for entry in "$dir"/*; do
      [ -e "$tree$entry" ] || ln -s "$entry" "$tree$entry"
    done
  done
  pg_config=$tree$("$pg_config" --bindir)/pg_config
  [ "$(id -u)" != 0 ] || chown -R postgres: "$tree"
}

# build_and_install SOURCES [MAKE ARGUMENT...]: builds the extension and installs it into the server of $pg_config,
# without output.
build_and_install() {
  local sources=$1 build_log
  shift
  build_log=$(mktemp -p "${work:-${TMPDIR:-/tmp}}")
  if ! unprivileged make -C "$sources" -s -j"$(nproc)" PG_CONFIG="$pg_config" \
    ${make_flags[@]+"${make_flags[@]}"} "$@" all install >"$build_log" 2>&1; then
    cat "$build_log" >&2
    rm -f "$build_log"
    die "the build failed"
  fi
  ! grep -q 'warning:' "$build_log" || grep 'warning:' "$build_log"
  rm -f "$build_log"
}
