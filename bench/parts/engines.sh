# shellcheck shell=bash disable=SC2034,SC2154
#
# Measures how fast one client reads a row by its id: on the server of the row, through PL/Proxy on a router, and
# through postgres_fdw on a router.
begin_results engines
# shellcheck source=bench/fleet.sh
. "$bench_dir/fleet.sh"
start_fleet
rows=$(by_form 20000 4000)  # the number of rows in each shard
for server in a b; do
  [ $server = a ] && from=0 || from=8
  on $server -c 'CREATE SCHEMA template; CREATE TABLE template.users (id bigint PRIMARY KEY DEFAULT snowflake.next_id(0), name text NOT NULL)' \
    -c "CALL snowflake.create_shards('template', '[$from,$((from + 8)))')" \
    -c "DO \$\$ BEGIN FOR s IN $from .. $((from + 7)) LOOP EXECUTE format('INSERT INTO shard_%s.users SELECT snowflake.make_id(timestamptz ''2026-01-01Z'' + n * interval ''1 ms'', %s, 0), n::text FROM generate_series(0, $rows - 1) AS n', s, s); END LOOP; END \$\$" \
    -c "CREATE FUNCTION user_name(id bigint) RETURNS text LANGUAGE plpgsql AS \$\$ DECLARE name text; BEGIN
          EXECUTE format('SELECT name FROM %I.users WHERE id = \$1', snowflake.schema_of(id)) INTO name USING id; RETURN name; END \$\$" \
    -c 'VACUUM ANALYZE'
  on control -o /dev/null -c "SELECT snowflake_fleet.assign('[$from,$((from + 8)))', '$server')"
done
on control -f "$work/source/bench/sql/engines.sql"

# by WHAT SERVER STATEMENT: measures how often per second one client can run STATEMENT on SERVER. The variable :id in
# STATEMENT is an id of shard 3, whose rows are on the server "a".
by() {
  local what=$1 server=$2 statement=$3
  unprivileged tee "$work/files/engines.sql" >/dev/null <<END
\\set s 3
\\set n random(0, $rows - 1)
\\set id (31536000000 + :n) * 8388608 + :s * 1024
$statement
END
  sample "$what" 'statements/s' "$run" "$(unprivileged "$bin/pgbench" -h "$work/run" -p $((5540 + $(region_of "$server"))) -U bench -n -c 1 \
    -M prepared -T "$(by_form 2 1)" -f "$work/files/engines.sql" postgres 2>/dev/null | sed -n 's/^tps = \([0-9.]*\).*/\1/p')"
}
for run in $(seq "$(by_form 4 2)"); do
  by 'direct, SELECT' a 'SELECT name FROM shard_3.users WHERE id = :id;'
  by 'direct, function' a 'SELECT user_name(:id);'
  by 'PL/Proxy, function' control 'SELECT user_name(:id);'
  by 'postgres_fdw, SELECT' control 'SELECT name FROM users WHERE id = :id;'
  by 'postgres_fdw, not pruned' control 'SELECT name FROM unpruned WHERE id = :id;'
  by 'direct, INSERT' a "INSERT INTO shard_3.users (name) VALUES ('new');"
  by 'postgres_fdw, INSERT' control "INSERT INTO users (id, name) VALUES (snowflake.next_id(3), 'new');"
done
stop_fleet
