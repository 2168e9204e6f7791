-- Reading ids where the extension is not: plain SQL functions for this database's layout.

CREATE FUNCTION snowflake.decoder_sql(schema name DEFAULT 'snowflake') RETURNS text
  LANGUAGE plpgsql STABLE CALLED ON NULL INPUT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET datestyle = 'ISO'
AS $$
DECLARE
  l CONSTANT snowflake.layout := l FROM snowflake.layout AS l;
  below CONSTANT integer := l.region_bits + l.shard_bits + l.sequence_bits;
  -- Where the bits add up to 64, half of the ticks are minted.
  ticks CONSTANT bigint := 1::bigint << l.time_bits - CASE l.time_bits + below WHEN 64 THEN 1 ELSE 0 END;
  mask CONSTANT bigint := (1::bigint << below) - 1;
BEGIN
  PERFORM snowflake.refuse_null('decoder_sql()', schema::text);
  IF schema IN ('', 'information_schema') OR starts_with(schema::text, 'pg_') THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_schema_name',
      MESSAGE = format('there can be no schema "%s" of yours', schema),
      DETAIL = 'The script makes the schema; PostgreSQL keeps names that begin with "pg_", and none is empty.',
      HINT = 'Pass another name, or leave it out for "snowflake".';
  END IF;
  RETURN format($decoder$-- Readers of ids of layout %2$s, tick %3$s ms, epoch %4$s, in plain SQL.
-- For PostgreSQL 14 or later without the extension snowflake. What is no id of this layout reads as null.
BEGIN;
CREATE SCHEMA %1$I;
COMMENT ON SCHEMA %1$I IS 'Readers of ids of layout %2$s, tick %3$s ms, epoch %4$s';
GRANT USAGE ON SCHEMA %1$I TO PUBLIC;

CREATE FUNCTION %1$I.time_of(id bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN CASE WHEN id BETWEEN 0 AND %5$s THEN (timestamp '1970-01-01 00:00:00'
    + (%6$s + (id >> %7$s) * %3$s) / 86400000 * interval '24 hours'
    + (%6$s + (id >> %7$s) * %3$s) %% 86400000 * interval '0.001 s') AT TIME ZONE 'UTC' END;
CREATE FUNCTION %1$I.region_of(id bigint) RETURNS integer LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN CASE WHEN id BETWEEN 0 AND %5$s THEN (id >> %8$s & %9$s)::integer END;
CREATE FUNCTION %1$I.shard_of(id bigint) RETURNS integer LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN CASE WHEN id BETWEEN 0 AND %5$s THEN (id >> %10$s & %11$s)::integer END;
CREATE FUNCTION %1$I.sequence_of(id bigint) RETURNS integer LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN CASE WHEN id BETWEEN 0 AND %5$s THEN (id & %12$s)::integer END;

-- Bounds: the first and the last id of a time, and the last one before it, -1 before the epoch.
-- Since the epoch; where that is too many, as many as there can be.
CREATE FUNCTION %1$I.microseconds_of(at timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN CASE WHEN isfinite(at) THEN least(extract(epoch FROM at AT TIME ZONE 'UTC') * 1000000 - %6$s000, 9223372036000000000)::bigint END;
CREATE FUNCTION %1$I.min_id(at timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN (SELECT CASE WHEN us >= 0 AND (us + %13$s - 1) / %13$s < %14$s THEN (us + %13$s - 1) / %13$s << %7$s END
            FROM %1$I.microseconds_of(at) AS us);
CREATE FUNCTION %1$I.max_id(at timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN (SELECT CASE WHEN us >= 0 AND us / %13$s < %14$s THEN us / %13$s << %7$s | %15$s END
            FROM %1$I.microseconds_of(at) AS us);
CREATE FUNCTION %1$I.last_id_before(at timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN (SELECT CASE WHEN us <= 0 OR at = '-infinity' THEN -1
                      WHEN at = 'infinity' OR us / %13$s >= %14$s THEN %5$s
                      ELSE (us - 1) / %13$s << %7$s | %15$s END
            FROM %1$I.microseconds_of(at) AS us);
-- Whether since <= time < until; uses an index on the id.
CREATE FUNCTION %1$I.created_within(id bigint, since timestamptz, until timestamptz) RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN id > %1$I.last_id_before(since) AND id <= %1$I.last_id_before(until);

-- Eleven characters, in the order of ids under COLLATE "C".
CREATE FUNCTION %1$I.to_base62(id bigint) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN (SELECT CASE WHEN id >= 0 THEN string_agg(
              substr('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz', (id / unit %% 62)::integer + 1, 1),
              '' ORDER BY unit DESC) END
            FROM unnest(%16$L::bigint[]) AS unit);
CREATE FUNCTION %1$I.from_base62(encoded text) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN (SELECT CASE WHEN encoded COLLATE "C" ~ '^[0-9A-Za-z]{11}$' AND sum(digit * unit) <= 9223372036854775807
                      THEN sum(digit * unit)::bigint END
            FROM unnest(%16$L::numeric[]) WITH ORDINALITY AS u (unit, place),
                 strpos('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz' COLLATE "C",
                        substr(encoded COLLATE "C", 12 - place::integer, 1)) AS at, CAST(at - 1 AS numeric) AS digit);

-- A shard for keys that are no ids.
CREATE FUNCTION %1$I.shard_for(key text) RETURNS integer LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN (('x' || left(encode(sha256(convert_to(key, 'UTF8')), 'hex'), 8))::bit(32)::bigint * %17$s >> 32)::integer;
CREATE FUNCTION %1$I.shard_for(key bigint) RETURNS integer LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN %1$I.shard_for(key::text);
CREATE FUNCTION %1$I.shard_for(key uuid) RETURNS integer LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN %1$I.shard_for(key::text);
COMMIT;
$decoder$,
    schema, l.bits, l.tick_ms, l.epoch,
    -- The last id; with 64 bits one more would be no bigint.
    (ticks - 1) << below | mask,
    (extract(epoch FROM l.epoch) * 1000)::bigint, below,
    l.shard_bits + l.sequence_bits, l.regions - 1, l.sequence_bits, l.shards - 1, (1::bigint << l.sequence_bits) - 1,
    l.tick_ms * 1000, ticks, mask,
    (SELECT array_agg((62::numeric ^ n)::bigint ORDER BY n) FROM generate_series(0, 10) AS n), l.shards);
END
$$;
COMMENT ON FUNCTION snowflake.decoder_sql(name) IS
  'A script of plain SQL that makes a schema with readers of this database''s ids (time, region, shard, sequence, bounds of time, base62, shard_for), for servers of PostgreSQL 14 or later that do not have the extension';
