# shellcheck shell=bash disable=SC2034,SC2154
# Moving in from other keys while four clients write, by the statements of doc/moving.md.
begin_results moving
start_server 'autovacuum = on'
sql -o /dev/null -c 'CREATE EXTENSION IF NOT EXISTS snowflake_migrate'
unprivileged perl "$work/source/bench/moving.pl" "$bin" "$place" "$(by_form 1000000 50000)" "$(by_form 2 1)" "$work/files" >>"$results"
