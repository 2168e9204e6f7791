# shellcheck shell=bash disable=SC2034,SC2154
#
# Loads rows into tables with each kind of primary key, by COPY and by INSERT with a SELECT. Kinds of keys with similar
# results are measured more often.
begin_results insert
start_server 'snowflake.max_lead = 60s'
sql -f "$work/source/bench/sql/load.sql"
rows=$(by_form 2000000 50000)
sql -c "COPY (SELECT i FROM generate_series(1, $rows) AS i) TO '$work/files/plain'" \
  -c "COPY (SELECT i, i FROM generate_series(1, $rows) AS i) TO '$work/files/with_id'" \
  -c "COPY (SELECT unnest(snowflake.next_ids(255, $rows / 2)), 1
            UNION ALL SELECT unnest(snowflake.next_ids(255, $rows / 2)), 1) TO '$work/files/with_fetched_id'"
# The first loads are not measured, because PostgreSQL has no old WAL files yet that it can recycle.
for warm_up in 1 2; do sql -c "CALL bench.load('INSERT', 'supplied', '', $rows, 0, '$work/files')"; done
sql -c 'TRUNCATE bench.sample'
close="ARRAY['supplied', 'next_id', 'nextval cache 1', 'nextval cache 100']"
copied="ARRAY['supplied', 'next_id', 'nextval cache 1', 'nextval cache 100', 'UUID v7']"
load() { sql -c "CALL bench.load_run('$1', $2, $rows, $3, '$work/files')"; }
all=$(sql -c "SELECT quote_literal(array_agg(name)) || '::text[]' FROM bench.key WHERE name <> 'Instagram, as pasted'")
for run in $(seq "$(by_form 4 1)"); do
  if [ "$run" -gt "$(by_form 2 1)" ]; then load INSERT "$close" "$run"; continue; fi
  load INSERT "$all" "$run"
  load COPY "$copied" "$run"
  # Repeats the bulk INSERT with the default value of "snowflake.max_lead".
  sql -c "ALTER SYSTEM SET snowflake.max_lead = '1s'" -c 'SELECT pg_reload_conf()' -c 'SELECT pg_sleep(0.2)' >/dev/null
  sql -c "CALL bench.load('INSERT', 'next_id', ', default max_lead', $rows, $run, '$work/files')"
  sql -c 'ALTER SYSTEM RESET snowflake.max_lead' -c 'ALTER SYSTEM SET snowflake.use_tsc = off' -c 'SELECT pg_reload_conf()' -c 'SELECT pg_sleep(0.2)' >/dev/null
  for kind in INSERT COPY; do sql -c "CALL bench.load('$kind', 'next_id', ', use_tsc off', $rows, $run, '$work/files')"; done
  sql -c 'ALTER SYSTEM RESET snowflake.use_tsc' -c 'SELECT pg_reload_conf()' -c 'SELECT pg_sleep(0.2)' >/dev/null
done
sample rows rows 1 "$rows"
take_samples
