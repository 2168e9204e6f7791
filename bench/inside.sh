#!/usr/bin/env bash
# Compares PostgreSQL's own uuidv7() with next_id() and nextval(). bench/parts/pg18.sh runs this script in a chroot with
# a minimal Debian system. PG_CONFIG is the path of the program pg_config of PostgreSQL 18. WORK is the directory that
# contains the sources and the new directory results/. ROWS is the number of rows of each bulk INSERT. Queries of UUIDs
# have CALLS / 5 rows, and other queries of calls have CALLS rows. A query makes ten calls for each row. RUNS is the
# number of measurements of calls, and LOADS is the number of measurements of bulk INSERTs.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"
. "$source_dir/bench/server.sh"
work=${WORK:?}
out=$work
choose_postgres
[ "$(id -u)" != 0 ] || chown -R postgres: "$work/source"
trap stop_server EXIT
# shellcheck disable=SC2119
prepare
"$pg_config" --version | sed 's/^PostgreSQL //' >"$work/version"
mkdir "$out/results"
begin_results pg18

start_server "snowflake.layout = '41/3/20'" 'snowflake.max_lead = 60s'
sql -c "INSERT INTO bench.subject (name, metric, expression, rows) VALUES
    ('(a column)', 'ns', 'i', $CALLS), ('next_id', 'ns', 'snowflake.next_id(SHARD)', $CALLS), ('nextval cache 1', 'ns', 'nextval(''one'')', $CALLS),
    ('uuidv7()', 'ns', 'uuidv7()', $CALLS / 5), ('UUID v7', 'ns', 'bench.uuidv7()', $CALLS / 5), ('UUID v4', 'ns', 'gen_random_uuid()', $CALLS / 5)" \
  -c "CALL bench.measure_calls($RUNS)"
take_samples

start_server 'snowflake.max_lead = 60s'
sql -f "$work/source/bench/sql/load.sql" -c "INSERT INTO bench.key VALUES (20, 'uuidv7()', 'uuid', 'uuidv7()')"
for _ in 1 2; do sql -c "CALL bench.load('INSERT', 'supplied', '', $ROWS, 0, '')"; done
sql -c 'TRUNCATE bench.sample'
for run in $(seq "$LOADS"); do
  sql -c "CALL bench.load_run('INSERT', ARRAY['supplied', 'next_id', 'nextval cache 1', 'uuidv7()'], $ROWS, $run, '')"
done
take_samples
