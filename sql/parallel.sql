-- Parallel workers and JIT do not change the results of functions that decode ids. Minting in a parallel operation is
-- refused.
SET timezone = 'UTC';
CREATE TABLE decoded (id bigint NOT NULL);
INSERT INTO decoded SELECT snowflake.make_id(timestamptz '2026-01-01' + g * interval '61.007 seconds', g % 256, g % 1024)
  FROM generate_series(1, 40000) g;
INSERT INTO decoded VALUES (0), (1), (9223372036854775806), (9223372036854775807);
ANALYZE decoded;
CREATE VIEW digest AS
  SELECT count(*) AS rows,
         md5(string_agg(concat_ws('|', id, extract(epoch FROM snowflake.time_of(id)), snowflake.shard_of(id),
                                  snowflake.region_of(id), snowflake.sequence_of(id)), ',' ORDER BY id)) AS fields
    FROM decoded;
CREATE VIEW counts AS
  SELECT sum(snowflake.shard_of(id)) AS shards, sum(snowflake.sequence_of(id)) AS sequences,
         min(snowflake.time_of(id)) AS first, max(snowflake.time_of(id)) AS last,
         count(*) FILTER (WHERE snowflake.created_within(id, '2026-01-05', '2026-01-09')) AS within,
         count(*) FILTER (WHERE snowflake.id_range('[2026-01-05,2026-01-09)') @> id) AS in_range,
         count(*) FILTER (WHERE id BETWEEN snowflake.min_id('2026-01-05') AND snowflake.max_id('2026-01-09')) AS between_ids,
         count(*) FILTER (WHERE id = snowflake.make_id(snowflake.time_of(id), snowflake.shard_of(id), snowflake.sequence_of(id), snowflake.region_of(id))) AS remade
    FROM decoded WHERE id >= 0;
SET max_parallel_workers_per_gather = 0;
SET jit = off;
CREATE TABLE expected AS SELECT digest::text AS digest, counts::text AS counts FROM digest, counts;
SELECT rows FROM digest;
SELECT shards, within, in_range, between_ids, remade FROM counts;

-- Two workers run the query, and the leader only collects rows
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET parallel_leader_participation = off;
EXPLAIN (COSTS OFF) SELECT sum(snowflake.shard_of(id)) FROM decoded WHERE snowflake.created_within(id, '2026-01-05', '2026-01-09');
SELECT counts::text = (SELECT counts FROM expected) AS counts_same FROM counts;
SELECT digest::text = (SELECT digest FROM expected) AS digest_same FROM digest;
SELECT count(*) FROM decoded, LATERAL snowflake.decode(id) d WHERE d.shard = 77;

-- All views are readable from a parallel query
SELECT count(*) > 0 AS layout FROM decoded, snowflake.layout WHERE snowflake.shard_of(decoded.id) < layout.shards;
SELECT count(*) > 0 AS status FROM decoded, snowflake.health WHERE snowflake.time_of(decoded.id) < health.clock;

-- When an index is built in parallel, workers evaluate the indexed expression
SET max_parallel_maintenance_workers = 2;
CREATE INDEX decoded_by_shard ON decoded (snowflake.shard_of(id));
SET enable_seqscan = off;
SELECT count(*) FROM decoded WHERE snowflake.shard_of(id) = 77;
RESET enable_seqscan;

-- The planner uses no parallel workers for a statement that mints ids
CREATE TABLE filled (id bigint PRIMARY KEY DEFAULT snowflake.next_id(50), of bigint);
INSERT INTO filled (of) SELECT id FROM decoded WHERE snowflake.sequence_of(id) < 100;
SELECT count(*) = (SELECT count(*) FROM decoded WHERE snowflake.sequence_of(id) < 100) AS filled FROM filled;
EXPLAIN (COSTS OFF) SELECT snowflake.next_id(50) FROM decoded;

-- A function that mints but is declared parallel safe fails in the worker and in the leader
CREATE FUNCTION not_safe(bigint) RETURNS boolean LANGUAGE plpgsql PARALLEL SAFE
  AS 'BEGIN RETURN snowflake.next_id(50) > $1; END';
CREATE FUNCTION not_safe_either(bigint) RETURNS boolean LANGUAGE plpgsql PARALLEL SAFE
  AS 'BEGIN RETURN (snowflake.next_ids(50, 10))[1] > $1; END';
\set SHOW_CONTEXT never
SELECT count(*) FROM decoded WHERE not_safe(id);
\echo SQLSTATE :SQLSTATE
SELECT count(*) FROM decoded WHERE not_safe_either(id);
\echo SQLSTATE :SQLSTATE
SET max_parallel_workers = 0;
SET parallel_leader_participation = on;
SELECT count(*) FROM decoded WHERE not_safe(id);
\echo SQLSTATE :SQLSTATE
RESET max_parallel_workers;
SELECT snowflake.next_id(50) > 0 AS minting_goes_on;

-- Queries that call the functions are compiled by JIT if the server supports JIT
RESET max_parallel_workers_per_gather;
RESET parallel_setup_cost;
SET jit = on;
SET jit_above_cost = 0;
SET jit_inline_above_cost = 0;
SET jit_optimize_above_cost = 0;
SELECT counts::text = (SELECT counts FROM expected) AS counts_same FROM counts;
SELECT digest::text = (SELECT digest FROM expected) AS digest_same FROM digest;
SELECT count(DISTINCT id) FROM (SELECT snowflake.next_id(51) AS id FROM generate_series(1, 2000)) s;
SELECT bool_and(snowflake.shard_of(id) = 51) FROM unnest(snowflake.next_ids(51, 100)) id;
SELECT sum(snowflake.next_id(9000)) FROM decoded;
\echo SQLSTATE :SQLSTATE
