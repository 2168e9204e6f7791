# One call from SQL. Pacing must not bind: a shard has 1,024,000 ids a second, and a tight loop wants
# thirty times that, so ids may run 60 s ahead and each run has a shard of its own.
begin_results call
start_server 'snowflake.max_lead = 60s'
PGOPTIONS="-c bench.runs=$(by_form 15 5)" sql -v rows="$(by_form 20000 10000)" -f "$work/source/bench/sql/call.sql"
take_samples
