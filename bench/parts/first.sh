# shellcheck shell=bash disable=SC2034,SC2154
#
# Measures how long the first call of next_id() in a new session takes: the call alone, and the whole statement.
begin_results first
start_server
for run in $(seq "$(by_form 80 10)"); do
  while IFS=$'\t' read -r name function argument call; do
    sample "$name" 'call, us' "$run" "$(sql -c "SELECT bench.once('$function', ($argument)::bigint) / 1000.0")"
    sample "$name" 'statement, us' "$run" \
      "$(printf '\\timing on\nSELECT %s;\n' "$call" | sql 2>&1 | sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p' |
        awk '{print $1 * 1000}')"
  done <<'END'
next_id	snowflake.next_id(int)	5	snowflake.next_id(5)
nextval cache 1	nextval(regclass)	'one'::regclass::oid	nextval('one')
END
done
