# shellcheck shell=bash disable=SC2034,SC2154
# Loads: INSERT ... SELECT and COPY, each key in turn.
begin_results insert
start_server 'snowflake.max_lead = 60s'
sql -f "$work/source/bench/sql/load.sql"
rows=$(by_form 2000000 100000)
sql -c "COPY (SELECT i FROM generate_series(1, $rows) AS i) TO '$work/files/plain'" \
  -c "COPY (SELECT i, i FROM generate_series(1, $rows) AS i) TO '$work/files/with_id'" \
  -c "COPY (SELECT unnest(snowflake.next_ids(8190, $rows / 2)), 1
            UNION ALL SELECT unnest(snowflake.next_ids(8190, $rows / 2)), 1) TO '$work/files/with_fetched_id'"
# The first loads find no WAL files to use again.
for warm_up in 1 2; do sql -c "CALL bench.load('INSERT', 'supplied', '', $rows, 0, '$work/files')"; done
sql -c 'TRUNCATE bench.sample'
for run in $(seq "$(by_form 3 1)"); do
  sql -c "CALL bench.load_all($rows, $run, '$work/files')"
  # The same load as it runs under the default setting.
  sql -c "ALTER SYSTEM SET snowflake.max_lead = '1s'" -c 'SELECT pg_reload_conf()' -c 'SELECT pg_sleep(0.2)' >/dev/null
  sql -c "CALL bench.load('INSERT', 'next_id', ', default max_lead', $rows, $run, '$work/files')"
  sql -c 'ALTER SYSTEM RESET snowflake.max_lead' -c 'SELECT pg_reload_conf()' -c 'SELECT pg_sleep(0.2)' >/dev/null
done
sample rows rows 1 "$rows"
take_samples
