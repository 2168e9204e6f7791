# shellcheck shell=bash disable=SC2034,SC2154
#
# Measures how fast one row is read by its id in a table with 16 to 256 partitions by shard. For comparison, measures
# reading from a plain table, from hash partitions, and from partitions that the planner cannot prune by the id.
begin_results route
start_server "max_locks_per_transaction = 1024"
rows=$(by_form 500000 100000)
PGOPTIONS="-c bench.runs=$(by_form 10 3)" sql -v rows="$rows" -f "$work/source/bench/sql/route.sql"

# Reads rows as an application does, with one prepared statement per transaction. The 500th and the last statement read
# the CPU clock of the backend.
statements=$(by_form 6000 1500)
tables='plain by_shard_16 by_shard_64 by_shard_256 by_hash_64'
for table in $tables; do
  unprivileged tee "$work/files/route_$table.sql" >/dev/null <<END
\\set n :n + 1
\\if :n = 500 OR :n = $statements + 500
INSERT INTO cpu VALUES ('$table', current_setting('plan_cache_mode'), :run, :n, bench.cpu_ns());
\\endif
\\set i random(0, $rows - 1)
\\set id (31536000000 + :i / 1000) * 8388608 + :i % 256 * 1024 + :i % 1000
SELECT v FROM $table WHERE id = :id;
END
done
for run in $(seq "$(by_form 5 2)"); do
  for mode in force_custom_plan force_generic_plan; do
    for table in $tables; do
      PGOPTIONS="-c plan_cache_mode=$mode" tps -c 1 -t $((statements + 500)) -D n=0 -D run="$run" \
        -f "$work/files/route_$table.sql" >/dev/null
    done
  done
done
sql -c "INSERT INTO bench.sample
        SELECT what, 'CPU ns by pgbench, ' || mode, run, (max(ns) - min(ns)) / (max(statements) - min(statements))
          FROM cpu GROUP BY what, mode, run"
sample rows rows 1 "$rows"
take_samples
