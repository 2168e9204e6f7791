# shellcheck shell=bash
#
# Chooses the PostgreSQL that the scripts use. scripts/lib.sh sources this file.

oldest_postgres=15

# Sets $pg_config to a PostgreSQL server that can be started and for which the extension can be built. If PG_CONFIG is
# set, the scripts use the server of PG_CONFIG. Without PG_CONFIG, the scripts use the newest server in
# /usr/lib/postgresql whose headers are installed. If no installed server has headers, the scripts use the newest
# installed server whose headers apt can install. If apt has no headers for any installed server, the scripts fail. If
# /usr/lib/postgresql contains no supported server, the scripts install and use Debian's version of PostgreSQL.
choose_postgres() {
  if [ -n "${PG_CONFIG:-}" ]; then
    pg_config=$(command -v "$PG_CONFIG") || die "PG_CONFIG=$PG_CONFIG cannot be run"
    pg_config=$(realpath -s "$pg_config")
    [ "$(pg_major)" -ge "$oldest_postgres" ] ||
      die "PG_CONFIG=$PG_CONFIG is $("$pg_config" --version); version $oldest_postgres or later is needed"
    [ -z "$(lacking)" ] || install_headers || die "$(cannot_be_used)"
  else
    choose_installed_server || choose_debians_own
  fi
  # Scripts that run as root start servers as the account postgres. If PostgreSQL is not from Debian, the account
  # postgres may be missing.
  [ "$(id -u)" != 0 ] || id postgres >/dev/null 2>&1 || install_missing postgresql-common
}

pg_major() { "$pg_config" --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/'; }

# Prints the first missing file that is needed to start the server of $pg_config, or to build the extension for it.
lacking() {
  local file
  [ -x "$pg_config" ] || { echo "$pg_config"; return; }
  for file in "$("$pg_config" --bindir)/postgres" "$("$pg_config" --bindir)/initdb" \
    "$("$pg_config" --includedir-server)/postgres.h" "$("$pg_config" --pgxs)"; do
    [ -e "$file" ] || { echo "$file"; return; }
  done
}

cannot_be_used() {
  echo "the server of $pg_config cannot be used: $(lacking) is missing. Install what belongs to that" \
    "server (headers and pgxs.mk are its development files), or set PG_CONFIG to the pg_config of another one."
}

# install_headers: installs the headers of the server of $pg_config. Fails if headers or other files for a build are
# missing after the installation.
install_headers() {
  local version
  version=$(pg_major)
  [ "$("$pg_config" --bindir)" = "/usr/lib/postgresql/$version/bin" ] &&
    [ -x "/usr/lib/postgresql/$version/bin/postgres" ] && apt_knows "postgresql-server-dev-$version" || return
  install_missing "postgresql-server-dev-$version"
  [ -z "$(lacking)" ]
}

# Sets $pg_config to an installed server, or fails if no server is installed.
choose_installed_server() {
  local version versions=() passed_over=''
  for version in $(printf '%s\n' /usr/lib/postgresql/*/bin/postgres | sort -Vr | cut -d/ -f5); do
    [[ $version =~ ^[0-9]+$ ]] && [ "$version" -ge "$oldest_postgres" ] || continue
    pg_config=/usr/lib/postgresql/$version/bin/pg_config
    if [ -z "$(lacking)" ]; then
      [ -z "$passed_over" ] || say "PostgreSQL $version is used, not$passed_over, which has no headers here"
      return 0
    fi
    versions+=("$version") passed_over+=" $version"
  done
  [ ${#versions[@]} != 0 ] || return 1
  for version in "${versions[@]}"; do
    pg_config=/usr/lib/postgresql/$version/bin/pg_config
    ! install_headers || return 0
    say "$(cannot_be_used)" >&2
  done
  die "apt has no headers for any of the servers in /usr/lib/postgresql:$passed_over"
}

choose_debians_own() {
  apt_knows postgresql || die "/usr/lib/postgresql has no server, and apt has none: set PG_CONFIG"
  local version
  version=$(candidate postgresql | sed -n 's/^\([0-9]*\).*/\1/p')
  [ "$version" -ge "$oldest_postgres" ] ||
    die "this system has PostgreSQL $version; version $oldest_postgres or later is needed (apt.postgresql.org has it)"
  install_missing "postgresql-$version" "postgresql-server-dev-$version"
  pg_config=/usr/lib/postgresql/$version/bin/pg_config
}
