# shellcheck shell=bash disable=SC2034,SC2154
# A day's rows through the primary key, against a created_at column with an index.
begin_results read
start_server
PGOPTIONS="-c bench.runs=$(by_form 15 5)" sql -v rows="$(by_form 3000000 300000)" -f "$work/source/bench/sql/read.sql"
take_samples
