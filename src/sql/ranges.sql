
-- Bounds

CREATE FUNCTION snowflake.min_id(at timestamptz) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_min_id'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.min_id(timestamptz) IS
  'Returns the smallest id whose time is the passed time or later. For times from a to before b, use id >= min_id(a) '
  'AND id < min_id(b)';

CREATE FUNCTION snowflake.max_id(at timestamptz) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_max_id'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.max_id(timestamptz) IS 'Returns the greatest id whose time is the passed time or earlier';

CREATE FUNCTION snowflake.id_range(during tstzrange) RETURNS int8range
  AS 'MODULE_PATHNAME', 'snowflake_id_range'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.id_range(tstzrange) IS
  'Converts a range of times to the range of the ids with these times. If the range of times is unbounded or empty, '
  'the result is also unbounded or empty';

CREATE FUNCTION snowflake.last_id_before(at timestamptz) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_last_id_before'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.last_id_before(timestamptz) IS
  'Returns the greatest id whose time is before the passed time. The function accepts any time: the result is -1 if '
  'the time is before the epoch, and the last id of the layout if the time is after the end of the layout';

-- created_within() calls last_id_before() for both times. If a time is after the end of the layout, the first id at the
-- time could exceed bigint. The planner must be able to inline created_within(), so that a query can use an index on
-- the id. To be inlined, created_within() uses each argument once, is not STRICT and has no SET clause. PostgreSQL
-- resolves the operators of a BEGIN ATOMIC body when the function is created, so the search_path of a caller does not
-- matter.
CREATE FUNCTION snowflake.created_within(id bigint, since timestamptz, until timestamptz)
  RETURNS boolean
  LANGUAGE SQL IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE
  BEGIN ATOMIC
    SELECT id OPERATOR(pg_catalog.>) snowflake.last_id_before(since)
       AND id OPERATOR(pg_catalog.<=) snowflake.last_id_before(until);
  END;
COMMENT ON FUNCTION snowflake.created_within(bigint, timestamptz, timestamptz) IS
  'Returns whether the time of the id is at or after "since" and before "until". The arguments "since" and "until" '
  'can be infinite. A query with this function can use an index on the id';

CREATE FUNCTION snowflake.make_id(at timestamptz, shard integer, sequence integer,
                                  region integer DEFAULT 0) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_make_id'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.make_id(timestamptz, integer, integer, integer) IS
  'Calculates an id from its fields. next_id() or backfill() can return the same id for another row. For a row of a '
  'past time use late_id()';
