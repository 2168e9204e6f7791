# shellcheck shell=bash disable=SC2034,SC2154
#
# Measures the change from other primary keys to ids, with the statements of doc/moving.md, while four clients write.
begin_results moving
start_server 'autovacuum = on'
sql -o /dev/null -c 'CREATE EXTENSION IF NOT EXISTS snowflake_migrate'
unprivileged perl "$work/source/bench/moving.pl" "$bin" "$place" "$(by_form 1000000 50000)" "$(by_form 2 1)" "$work/files" >>"$results"
