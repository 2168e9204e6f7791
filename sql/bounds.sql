-- Tests the functions that compute ids from times: min_id(), max_id(), id_range(), created_within(). All bounds are
-- half-open.
SET timezone = 'UTC';
SET datestyle = ISO;

-- Tests times around the start of a tick, which is at a whole millisecond
SELECT to_char(at, 'SS.US') AS at, snowflake.decode(snowflake.min_id(at)) AS min_id,
       snowflake.decode(snowflake.max_id(at)) AS max_id
  FROM unnest(ARRAY['2026-03-01 12:00:00.123', '2026-03-01 12:00:00.123001', '2026-03-01 12:00:00.123999',
                    '2026-03-01 12:00:00.124']::timestamptz[]) AS at;

-- min_id(t) is the smallest id whose time is t or later. max_id(t) is the greatest id whose time is t or earlier. The
-- nearest ids below min_id(t) and above max_id(t) do not match.
CREATE VIEW times AS
  SELECT timestamptz '2026-03-01 12:00:00.100' + ms * interval '1 ms' + us * interval '1 us' AS at
    FROM generate_series(0, 3) ms, unnest(ARRAY[0, 1, 500, 999]) us;
SELECT count(*) AS times,
       bool_and(snowflake.time_of(snowflake.min_id(at)) >= at) AS min_is_in,
       bool_and(snowflake.time_of(snowflake.min_id(at) - 1) < at) AS the_id_before_is_out,
       bool_and(snowflake.time_of(snowflake.max_id(at)) <= at) AS max_is_in,
       bool_and(snowflake.time_of(snowflake.max_id(at) + 1) > at) AS the_id_after_is_out
  FROM times;

-- created_within() and id_range() give the same result as a comparison of the ids' times. The test uses every pair of
-- times, and ids of three shards in the time units (ticks) around these times
CREATE VIEW ids AS
  SELECT snowflake.make_id(at, shard, sequence) AS id
    FROM generate_series(timestamptz '2026-03-01 12:00:00.099', '2026-03-01 12:00:00.105', '1 ms') at,
         unnest(ARRAY[0, 17, 255]) shard, unnest(ARRAY[0, 1023]) sequence;
SELECT count(*) AS cases, count(*) FILTER (WHERE within) AS within,
       count(*) FILTER (WHERE within <> (snowflake.time_of(id) >= a AND snowflake.time_of(id) < b)) AS wrong
  FROM (SELECT id, a.at AS a, b.at AS b, snowflake.created_within(id, a.at, b.at) AS within
          FROM ids, times a, times b) c;
SELECT kind, count(*) AS cases, count(*) FILTER (WHERE inside) AS inside,
       count(*) FILTER (WHERE inside <> (during @> snowflake.time_of(id))) AS wrong
  FROM (SELECT id, kind, during, snowflake.id_range(during) @> id AS inside
          FROM ids, times a, times b, unnest(ARRAY['[)', '[]', '(]', '()']) kind,
               LATERAL (SELECT tstzrange(a.at, b.at, kind)) r (during)
         WHERE a.at <= b.at) c
 GROUP BY kind ORDER BY kind;

-- Tests ranges: inclusive and exclusive bounds, open ends, the empty range, the unlimited range, NULL
SELECT snowflake.id_range(during), snowflake.id_range(during) = int8range(snowflake.min_id(lower(during)),
                                                                          snowflake.min_id(upper(during))) AS same
  FROM (VALUES (tstzrange '[2026-01-01, 2026-01-02)')) v (during);
SELECT snowflake.id_range('[2026-01-01, 2026-01-01]') = int8range(snowflake.min_id('2026-01-01'),
                                                                  snowflake.max_id('2026-01-01'), '[]') AS one_tick;
SELECT snowflake.id_range('[2026-01-01,)') AS since, snowflake.id_range('(,2026-01-01)') AS until,
       snowflake.id_range('(,)') AS all_ids, snowflake.id_range('empty') AS none,
       snowflake.id_range(NULL) IS NULL AS null_range;
-- No id has a time between two time units (ticks)
SELECT snowflake.id_range('(2026-01-01 00:00:00.0001, 2026-01-01 00:00:00.0009)') AS nobody;
-- Tests id_range() with an argument of a domain over tstzrange, and with a column as argument
CREATE DOMAIN period AS tstzrange;
SELECT snowflake.id_range(period '[2026-01-01, 2026-01-02)') = snowflake.id_range(tstzrange '[2026-01-01, 2026-01-02)') AS same;

-- If one bound is NULL, created_within() is false if the id is outside of the other bound, and NULL otherwise
SELECT snowflake.created_within(snowflake.min_id('2026-01-01'), NULL, '2026-01-02') IS NULL AS unknown,
       snowflake.created_within(snowflake.min_id('2026-01-01'), NULL, '2025-01-02') AS outside,
       snowflake.created_within(NULL, '2026-01-01', '2026-01-02') IS NULL AS no_id,
       snowflake.created_within(5, '2026-01-02', '2026-01-01') AS backwards;

-- An id that is minted now was created within the last minute, and not before that
SELECT snowflake.created_within(id, now() - interval '1 minute', clock_timestamp() + interval '1 minute') AS now,
       snowflake.created_within(id, now() - interval '1 hour', now() - interval '1 minute') AS before
  FROM (SELECT snowflake.next_id(30) AS id OFFSET 0) s;

-- The ends of the layout
SELECT snowflake.min_id('2025-01-01') AS first_id, snowflake.max_id('2025-01-01') AS last_of_first_tick;
SELECT snowflake.min_id('2059-11-04 19:53:47.775+00') AS first_of_last_tick,
       snowflake.max_id('2059-11-04 19:53:47.775+00') AS last_id;
SELECT snowflake.min_id('2024-12-31 23:59:59.999999+00');
\echo SQLSTATE :SQLSTATE
SELECT snowflake.max_id('2024-12-31 23:59:59.999999+00');
\echo SQLSTATE :SQLSTATE
SELECT snowflake.min_id('2059-11-04 19:53:47.776+00');
\echo SQLSTATE :SQLSTATE
SELECT snowflake.min_id('infinity');
\echo SQLSTATE :SQLSTATE
SELECT snowflake.min_id('2059-11-04 19:53:47.775001+00');
\echo SQLSTATE :SQLSTATE
SELECT snowflake.max_id('2059-11-04 19:53:47.775001+00') AS last_id;
SELECT snowflake.max_id('-infinity');
\echo SQLSTATE :SQLSTATE
SELECT snowflake.min_id('4713-01-01 BC');
\echo SQLSTATE :SQLSTATE
SELECT snowflake.min_id('294276-12-31 23:59:59.999999+00');
\echo SQLSTATE :SQLSTATE
SELECT snowflake.id_range('[2026-01-01, infinity)');
\echo SQLSTATE :SQLSTATE
SELECT snowflake.id_range('[2026-01-01, 2059-11-04 19:53:47.775]');
\echo SQLSTATE :SQLSTATE
\set SHOW_CONTEXT never

-- created_within() accepts any time: before the epoch, beyond the layout, infinite
CREATE TABLE moments (at timestamptz);
INSERT INTO moments VALUES ('-infinity'), ('4713-01-01 BC'), ('2024-12-31 23:59:59.999999+00'), ('2025-01-01+00'),
  ('2025-01-01 00:00:00.000001+00'), ('2026-03-01+00'), ('2059-11-04 19:53:47.775+00'),
  ('2059-11-04 19:53:47.775999+00'), ('2059-11-04 19:53:47.776+00'), ('294276-12-31'), ('infinity');
SELECT count(*) AS cases, count(*) FILTER (WHERE within) AS within,
       count(*) FILTER (WHERE within IS DISTINCT FROM (a.at <= created AND created < b.at)) AS wrong
  FROM moments a, moments b,
       unnest(ARRAY[0, 1, snowflake.make_id('2026-02-28 23:59:59.999+00', 255, 1023, 31), snowflake.make_id('2026-03-01+00', 0, 0),
                    snowflake.make_id('2059-11-04 19:53:47.774+00', 255, 1023, 31),
                    snowflake.make_id('2059-11-04 19:53:47.775+00', 0, 0)]) id,
       LATERAL (SELECT snowflake.created_within(id, a.at, b.at), snowflake.time_of(id)) c (within, created);
SELECT at, snowflake.last_id_before(at) FROM moments ORDER BY at;
-- The greatest bigint is the layout's last id, so no range of times past the layout's end contains it
SELECT snowflake.created_within(9223372036854775807, snowflake.time_of(9223372036854775807), 'infinity') AS last,
       snowflake.created_within(9223372036854775807, '2100-01-01', 'infinity') AS past_the_end,
       snowflake.created_within(9223372036854775807, 'infinity', 'infinity') AS never,
       snowflake.created_within(9223372036854775807, 'infinity', '2030-01-01') AS reversed,
       NOT snowflake.created_within(0, '2100-01-01', '2101-01-01') AS is_false,
       snowflake.created_within(0, NULL, 'infinity') AS unknown;
SELECT snowflake.created_within(1, NULL, '2026-01-01') AS since, snowflake.created_within(1, '2024-01-01', NULL) AS until,
       snowflake.created_within(NULL, '2024-01-01', '2026-01-01') AS id;
SELECT snowflake.next_id(30) > 0 AS minting_goes_on;
