# shellcheck shell=bash
#
# Lists the programs of test/clients/ and installs the packages that they need. scripts/test sources this file.

# Lists the clients that run by default. The packages of the default clients (drivers and tools) can be installed within
# about a minute. The test fails if the packages of a client in this list cannot be installed.
clients_in_ci=(psycopg psycopg2 asyncpg sqlalchemy django pandas node-postgres postgres-js knex objection kysely
  jdbc dbd-pg dbix-class pdo pgbouncer pg_partman jq http reader-javascript reader-python reader-java reader-cpp)
# Lists the clients that run only if the caller names them. The test reports a client in this list as not run if its
# packages cannot be installed.
clients_by_name=(django-width sequelize typeorm drizzle prisma hibernate eclipselink activerecord doctrine eloquent lib-pq pgx reader-go reader-csharp)

# install_client CLIENT TREE: installs the Debian packages that a client needs. Packages of the npm registry are
# installed below TREE, the copy of the sources in which the tests run.
install_client() {
  local client=$1 tree=$2/test/clients
  case $client in
    psycopg) install_missing python3-psycopg ;;
    psycopg2) install_missing python3-psycopg2 ;;
    asyncpg) install_missing python3-asyncpg ;;
    sqlalchemy) install_missing python3-sqlalchemy python3-psycopg2 ;;
    django) install_missing python3-django python3-psycopg2 ;;
    django-width) unpack_unstable "$tree/python/django5" python3-{django,psycopg,asgiref,sqlparse,typing-extensions} ;;
    pandas) install_missing python3-pandas python3-psycopg2 ;;
    node-postgres | postgres-js | knex | objection | kysely) npm_install "$tree/javascript" ci ;;
    sequelize | typeorm | drizzle | prisma) npm_install "$tree/orms" install --no-package-lock ;;
    jdbc) install_java libpostgresql-jdbc-java ;;
    hibernate) install_java libpostgresql-jdbc-java libhibernate3-java libjavassist-java ;;
    eclipselink) install_java libpostgresql-jdbc-java libeclipselink-java ;;
    dbd-pg) install_missing libdbd-pg-perl ;;
    dbix-class) install_missing libdbix-class-perl libdbd-pg-perl ;;
    pdo) install_missing php-cli php-pgsql ;;
    doctrine) install_missing php-cli php-pgsql php-doctrine-orm php-symfony-cache ;;
    eloquent) install_missing php-cli php-pgsql php-illuminate-database ;;
    activerecord) install_missing ruby-activerecord ruby-activerecord-import ruby-pg ;;
    lib-pq) install_missing golang-go golang-github-lib-pq-dev ;;
    pgx) install_missing golang-go golang-github-jackc-pgx-v4-dev ;;
    pgbouncer) install_missing pgbouncer libdbd-pg-perl ;;
    pg_partman) install_missing "postgresql-$(pg_major)-partman" libdbd-pg-perl ;;
    jq) install_missing jq ;;
    http) install_missing python3-psycopg python3-psycopg-pool python3-flask python3-waitress ;;
    reader-javascript) command -v node >/dev/null || install_missing nodejs ;;
    reader-python) install_missing python3 ;;
    reader-java) install_java ;;
    reader-cpp) install_missing g++ ;;
    reader-go) command -v go >/dev/null || install_missing golang-go ;;
    reader-csharp) install_missing mono-mcs mono-runtime ;;
    *) die "no packages are known for the client $client" ;;
  esac
}

install_java() {
  install_missing "$@"
  command -v javac >/dev/null || install_missing default-jdk-headless
}

# unpack_unstable DIRECTORY PACKAGE...: unpacks packages of Debian unstable into DIRECTORY, without installing them. The
# packages come from the mirror that this machine's apt uses.
unpack_unstable() {
  local directory=$1 mirror options package
  shift
  install_missing libpq5 debian-archive-keyring
  # shellcheck disable=SC2016    # apt's own variable
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Label: Debian' | head -1)
  [ -n "$mirror" ] || return 1
  mkdir -p "$directory/lists/partial" "$directory/cache/archives/partial"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror sid main" >"$directory/sources.list"
  options=(-o Dir::Etc::sourcelist="$directory/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o Dir::State::lists="$directory/lists" -o Dir::Cache="$directory/cache"
    -o Acquire::Check-Valid-Until=false -o Acquire::Languages=none)
  apt-get "${options[@]}" update
  for package in "$@"; do (cd "$directory" && apt-get "${options[@]}" download "$package/sid"); done
  for package in "$directory"/*.deb; do dpkg-deb -x "$package" "$directory"; done
}

# npm_install DIRECTORY SUBCOMMAND...: installs the packages in DIRECTORY/package.json, once in a run of the tests. npm
# runs no scripts of these packages.
npm_install() {
  local directory=$1
  shift
  [ ! -e "$directory/node_modules" ] || return 0
  [ ! -e "$directory/failed" ] || { cat "$directory/failed" >&2; return 1; }
  command -v node >/dev/null || install_missing nodejs
  command -v npm >/dev/null || install_missing npm
  (cd "$directory" && npm "$@" --ignore-scripts --no-audit --no-fund --cache "$directory/.cache") ||
    {
      rm -rf "$directory/node_modules"
      die "$(echo "npm could not install what $directory/package.json names" | tee "$directory/failed")"
    }
  rm -rf "$directory/.cache"
  [ "$(id -u)" != 0 ] || chown -R postgres: "$directory"
}
