-- Tests plans of queries with times and ids: index conditions, partition pruning, generated columns and expression
-- indexes.
SET timezone = 'UTC';
SET datestyle = ISO;

-- Makes a photo for each minute of a week
CREATE TABLE pictures (id bigint PRIMARY KEY, taken timestamptz NOT NULL, note text);
INSERT INTO pictures
  SELECT snowflake.make_id(at, 1 + n % 16, n % 1024), at, 'photo'
    FROM (SELECT timestamptz '2025-03-02' + m * interval '1 minute', m
            FROM generate_series(0, 7 * 24 * 60 - 1) m) s (at, n);
VACUUM ANALYZE pictures;
SET enable_seqscan = off;
SET enable_bitmapscan = off;

-- A condition with created_within() and constants becomes an index condition on the primary key
EXPLAIN (COSTS OFF)
SELECT note FROM pictures WHERE snowflake.created_within(id, '2025-03-03', '2025-03-04');
SELECT count(*), min(taken), max(taken) FROM pictures
 WHERE snowflake.created_within(id, '2025-03-03', '2025-03-04');
-- A condition with created_within() and now() becomes an index condition
EXPLAIN (COSTS OFF)
SELECT note FROM pictures WHERE snowflake.created_within(id, now() - interval '1 day', now());
-- A condition with created_within() and parameters of a generic plan becomes an index condition
SET plan_cache_mode = force_generic_plan;
PREPARE of_day(timestamptz, timestamptz) AS
  SELECT count(*), min(taken), max(taken) FROM pictures WHERE snowflake.created_within(id, $1, $2);
EXPLAIN (COSTS OFF) EXECUTE of_day('2025-03-05', '2025-03-06');
EXECUTE of_day('2025-03-05', '2025-03-06');
RESET plan_cache_mode;
-- A condition with created_within() and another table's column becomes an index condition
CREATE TABLE days (day timestamptz);
INSERT INTO days VALUES ('2025-03-02'), ('2025-03-08'), ('2025-03-09');
ANALYZE days;
RESET enable_seqscan;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
EXPLAIN (COSTS OFF)
SELECT day, note FROM days JOIN pictures ON snowflake.created_within(id, day, day + interval '1 day');
SELECT day, count(note) FROM days
  LEFT JOIN pictures ON snowflake.created_within(id, day, day + interval '1 day') GROUP BY day ORDER BY day;
SET enable_seqscan = off;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_material;

-- Bounds by min_id() and a range of ids find the same rows
EXPLAIN (COSTS OFF)
SELECT note FROM pictures WHERE id >= snowflake.min_id('2025-03-03') AND id <= snowflake.max_id('2025-03-04');
EXPLAIN (COSTS OFF)
SELECT note FROM pictures WHERE id BETWEEN lower(snowflake.id_range('[2025-03-03,2025-03-04)'))
                                     AND upper(snowflake.id_range('[2025-03-03,2025-03-04)')) - 1;

-- A query for the latest pictures, newest first, reads the index in its order
EXPLAIN (COSTS OFF)
SELECT note FROM pictures WHERE snowflake.created_within(id, '2025-03-03', '2025-03-04') ORDER BY id DESC LIMIT 5;

-- Functions and operators of other roles that come first in search_path change nothing
CREATE SCHEMA evil;
CREATE FUNCTION evil.everything(bigint, bigint) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE OPERATOR evil.>= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.everything);
CREATE OPERATOR evil.> (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.everything);
CREATE OPERATOR evil.<= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.everything);
CREATE FUNCTION evil.min_id(timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 0::bigint';
SET search_path = evil, pg_catalog, public;
SELECT 1::bigint >= 2::bigint AS evil_works;
EXPLAIN (COSTS OFF)
SELECT note FROM pictures WHERE snowflake.created_within(id, '2025-03-03', '2025-03-04');
SELECT count(*) FROM pictures WHERE snowflake.created_within(id, '2025-03-03', '2025-03-04');
SET search_path = '';
SELECT count(*) FROM public.pictures WHERE snowflake.created_within(id, '2025-03-03', '2025-03-04');
RESET search_path;

-- Tests partitions by time, with bounds that are written as times
RESET enable_seqscan;
CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake.next_id(40), what text) PARTITION BY RANGE (id);
CREATE TABLE events_2025_01 PARTITION OF events
  FOR VALUES FROM (snowflake.min_id('2025-01-01')) TO (snowflake.min_id('2025-02-01'));
CREATE TABLE events_2025_02 PARTITION OF events
  FOR VALUES FROM (snowflake.min_id('2025-02-01')) TO (snowflake.min_id('2025-03-01'));
CREATE TABLE events_2025_03 PARTITION OF events
  FOR VALUES FROM (snowflake.min_id('2025-03-01')) TO (snowflake.min_id('2025-04-01'));
CREATE TABLE events_rest PARTITION OF events DEFAULT;
INSERT INTO events SELECT snowflake.make_id(day, 40, 0), to_char(day, 'YYYY-MM-DD')
  FROM generate_series(timestamptz '2025-01-01', '2025-03-31', '1 day') day;
INSERT INTO events VALUES (snowflake.make_id('2025-01-31 23:59:59.999', 255, 1023), 'last of January'),
  (snowflake.make_id('2025-02-01', 0, 0), 'first of February');
INSERT INTO events (what) VALUES ('now');
SELECT tableoid::regclass, count(*) FROM events GROUP BY 1 ORDER BY 1;
SELECT tableoid::regclass, what FROM events WHERE what LIKE '%of%' ORDER BY what;
EXPLAIN (COSTS OFF)
SELECT what FROM events WHERE snowflake.created_within(id, '2025-02-10', '2025-02-11');
EXPLAIN (COSTS OFF)
SELECT what FROM events WHERE id = snowflake.make_id('2025-01-05', 40, 0);
-- If created_within() ends at the start of a month, the partition of this month is not read
EXPLAIN (COSTS OFF)
SELECT what FROM events WHERE snowflake.created_within(id, '2025-01-10', '2025-02-01');
SET plan_cache_mode = force_generic_plan;
PREPARE what_of(timestamptz, timestamptz) AS
  SELECT what FROM events WHERE snowflake.created_within(id, $1, $2) ORDER BY what LIMIT 1;
EXPLAIN (COSTS OFF) EXECUTE what_of('2025-03-10', '2025-03-11');
EXECUTE what_of('2025-03-10', '2025-03-11');
RESET plan_cache_mode;

-- Generated columns are computed from the id that the default made
CREATE TABLE pins (
  id bigint PRIMARY KEY DEFAULT snowflake.next_id(41),
  created_at timestamptz GENERATED ALWAYS AS (snowflake.time_of(id)) STORED,
  shard int GENERATED ALWAYS AS (snowflake.shard_of(id)) STORED,
  note text,
  CHECK (snowflake.shard_of(id) BETWEEN 41 AND 43)
);
INSERT INTO pins (note) SELECT 'pin' FROM generate_series(1, 300);
INSERT INTO pins (id) SELECT snowflake.next_id(42 + g % 2) FROM generate_series(1, 200) g;
SELECT shard, count(*), bool_and(created_at = snowflake.time_of(id)) AS time_fits FROM pins GROUP BY 1 ORDER BY 1;
INSERT INTO pins (id) VALUES (snowflake.make_id('2025-01-01', 44, 0));
\echo SQLSTATE :SQLSTATE

-- Indexes over the fields
CREATE INDEX pins_by_shard ON pins (snowflake.shard_of(id), id);
CREATE UNIQUE INDEX pins_once ON pins (snowflake.time_of(id), snowflake.shard_of(id), snowflake.sequence_of(id));
CREATE INDEX pins_of_43 ON pins (id) WHERE snowflake.shard_of(id) = 43;
VACUUM ANALYZE pins;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF)
SELECT note FROM pins WHERE snowflake.shard_of(id) = 42;
SELECT count(*) FROM pins WHERE snowflake.shard_of(id) = 42;
EXPLAIN (COSTS OFF)
SELECT note FROM pins WHERE snowflake.time_of(id) = '2025-03-01' AND snowflake.shard_of(id) = 41;
DROP INDEX pins_by_shard;
EXPLAIN (COSTS OFF)
SELECT id FROM pins WHERE snowflake.shard_of(id) = 43 AND snowflake.created_within(id, '2025-01-01', '2050-01-01');
SELECT count(*) FROM pins WHERE snowflake.shard_of(id) = 43 AND snowflake.created_within(id, '2025-01-01', '2050-01-01');
-- Ids of two shards with the same time and sequence number are different ids
INSERT INTO pins (id) VALUES (snowflake.make_id('2025-01-01', 41, 9)), (snowflake.make_id('2025-01-01', 42, 9));
REINDEX TABLE pins;
SELECT count(*) FROM pins WHERE snowflake.time_of(id) = '2025-01-01';
