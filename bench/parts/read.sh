# shellcheck shell=bash disable=SC2034,SC2154
#
# Compares two ways to read all rows of a day: by a range of ids, and by an index on a column created_at.
begin_results read
start_server
PGOPTIONS="-c bench.runs=$(by_form 15 5)" sql -v rows="$(by_form 3000000 300000)" -f "$work/source/bench/sql/read.sql"
take_samples
