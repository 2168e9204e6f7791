# shellcheck shell=bash disable=SC2154
#
# Contains functions for the tests of the installed packages, which source this file. The tests of the installed
# packages run as root, with a PostgreSQL cluster of their own.
set -euo pipefail

fail() { echo "not ok: $*" >&2; exit 1; }
expect() {  # WHAT WANTED GOT
  [ "$2" = "$3" ] || fail "$1: wanted \"$2\", got \"$3\""
  echo "ok: $1"
}

# Prints the PostgreSQL versions for which the extension's package is installed.
installed_versions() {
  dpkg-query -W -f '${db:Status-Status} ${Package}\n' 'postgresql-*-snowflake' |
    sed -n 's/^installed postgresql-\([0-9]*\)-snowflake$/\1/p'
}

# Prints the version of the extension in the installed package for PostgreSQL $postgres.
packaged_version() { dpkg-query -W -f '${source:Upstream-Version}' "postgresql-$postgres-snowflake"; }

# start_cluster: starts a cluster of PostgreSQL $postgres that listens only on its Unix socket and does not preload the
# library. When the script ends, the test cluster is removed.
start_cluster() {
  pg_createcluster "$postgres" snowflake_test -- --no-sync >/dev/null
  trap 'pg_dropcluster --stop "$postgres" snowflake_test 2>/dev/null || true' EXIT
  pg_conftool "$postgres" snowflake_test set listen_addresses ''
  pg_ctlcluster "$postgres" snowflake_test start
}
query() { su postgres -c "psql -XAtq -v ON_ERROR_STOP=1 --cluster $postgres/snowflake_test -d postgres" <<<"$1"; }
