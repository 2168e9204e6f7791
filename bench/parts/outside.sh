# shellcheck shell=bash disable=SC2034,SC2154
#
# Measures conversions of ids to text, to UUIDs and to aliases (encrypted ids). For comparison, measures id::text and
# gen_random_uuid().
begin_results outside
start_server
echo "bench 0 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f" |
  unprivileged sh -c 'umask 077; cat >"$0"' "$work/run/data/snowflake_alias.keys"
PGOPTIONS="-c bench.runs=$(by_form 15 5)" sql -v rows="$(by_form 20000 10000)" -f "$work/source/bench/sql/outside.sql"
take_samples
