-- Reserves a region and a shard for ids of old rows. An origin is a pair of region and shard. Only backfill() and
-- late_id() create ids with a reserved region and shard. The functions backfill() and late_id() never use the same pair
-- of region and shard.
--
-- Each id in a reserved region and shard has a time before the time in the column backfills.until. After
-- reserve_origin() has raised the high-water mark to backfills.until, the database mints only ids of that time or
-- later, in every region. The search for existing ids in the region and shard begins after the high-water mark is
-- raised.

CREATE FUNCTION snowflake.owns_shard(shard integer) RETURNS boolean
  LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT owned = 'all'
      OR EXISTS (SELECT FROM regexp_matches(owned, '(\d+)(?:\s*-\s*(\d+))?', 'g') AS m
                  WHERE shard BETWEEN m[1]::integer AND coalesce(m[2], m[1])::integer)
    FROM coalesce((SELECT d.owned_shards FROM snowflake.databases AS d WHERE d.database = current_database()),
                  current_setting('snowflake.owned_shards')) AS owned
$$;
COMMENT ON FUNCTION snowflake.owns_shard(integer) IS
  'Internal: for backfill(): returns whether the database owns a shard';

CREATE FUNCTION snowflake.has_ids_of_origin(relation regclass, id_column name, region integer, shard integer,
                                            after bigint) RETURNS boolean
  AS 'MODULE_PATHNAME', 'snowflake_has_ids_of_origin'
  LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.has_ids_of_origin(regclass, name, integer, integer, bigint) IS
  'Internal: for backfill(): returns whether a column of a table or its child tables contains an id of a region and '
  'shard that is greater than a given id. The function also reads uncommitted rows, and evaluates no expression';

CREATE FUNCTION snowflake.column_of_origin(region integer, shard integer, after bigint) RETURNS text
  LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('%s.%I', m.relation, m.attribute)
    FROM snowflake.minting_columns() AS m
   WHERE NOT EXISTS (SELECT FROM pg_inherits JOIN snowflake.minting_columns() AS p ON p.relation = inhparent
                      WHERE inhrelid = m.relation AND p.attribute = m.attribute)
     AND snowflake.has_ids_of_origin(m.relation, m.attribute, region, shard, after)
   LIMIT 1
$$;
COMMENT ON FUNCTION snowflake.column_of_origin(integer, integer, bigint) IS
  'Internal: for backfill(): searches the columns whose default or trigger mints ids. Returns a column that contains '
  'an id of a region and shard that is greater than a given id, or null';
REVOKE ALL ON FUNCTION snowflake.has_ids_of_origin(regclass, name, integer, integer, bigint),
  snowflake.column_of_origin(integer, integer, bigint) FROM PUBLIC;

CREATE FUNCTION snowflake.check_origin(wanted_region integer, wanted_shard integer) RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  l CONSTANT snowflake.layout := l FROM snowflake.layout AS l;
BEGIN
  IF wanted_shard NOT BETWEEN 0 AND l.shards - 1 OR wanted_region NOT BETWEEN 0 AND l.regions - 1 THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('%sshard %s is out of range', coalesce('region ' || wanted_region || ', ', ''), wanted_shard),
      DETAIL = format('The layout has regions 0 to %s and shards 0 to %s.', l.regions - 1, l.shards - 1),
      HINT = 'Pass a shard and a region of the layout.';
  END IF;
  IF l.regions = 1 AND snowflake.owns_shard(wanted_shard) THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('this server can mint new ids for shard %s', wanted_shard),
      DETAIL = 'Because the id layout has no regions, the ids of old rows need a shard in which no server mints.',
      HINT = 'Choose a shard without ids, and remove it from "snowflake.owned_shards" on every server. '
             'Then reload the configuration, and connect again.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.check_origin(integer, integer) IS
  'Internal: for backfill(): raises an error if the layout does not have a shard or region, or if the shard is in use. '
  'The argument `wanted_region` may be null';

CREATE FUNCTION snowflake.free_region(wanted_shard integer, own integer) RETURNS integer
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  regions CONSTANT integer := l.regions FROM snowflake.layout AS l;
  leased CONSTANT boolean := current_setting('snowflake.region')::integer < 0;
  chosen integer;
BEGIN
  chosen := CASE WHEN regions = 1 THEN 0
                 WHEN NOT leased THEN (SELECT max(r) FROM generate_series(0, regions - 1) AS r
                                        WHERE r <> own
                                          AND NOT EXISTS (SELECT FROM snowflake.backfills AS b
                                                           WHERE b.region = r AND b.shard = wanted_shard)
                                          AND snowflake.column_of_origin(r, wanted_shard, -1) IS NULL) END;
  IF chosen IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'no region is free for ids of old rows',
      DETAIL = CASE WHEN leased THEN 'The servers lease regions, so a server may later lease any region.'
                    ELSE format('Ids of shard %s exist or are reserved in all regions except %s, which is the region '
                                'of this server.',
                                wanted_shard, own) END,
      HINT = CASE WHEN leased
                  THEN 'Pass a region that no server has in "snowflake.leased_regions": region => N.'
                  ELSE 'Pass another shard.' END;
  END IF;
  RETURN chosen;
END
$$;
COMMENT ON FUNCTION snowflake.free_region(integer, integer) IS
  'Internal: for backfill(): returns a region in which no id of the shard exists. Raises an error if every region has '
  'ids of the shard';

CREATE FUNCTION snowflake.refuse_origin(chosen integer, wanted_shard integer, own integer, taken snowflake.backfills)
  RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  regions CONSTANT integer := l.regions FROM snowflake.layout AS l;
  used text;
BEGIN
  IF regions > 1 AND chosen = coalesce(own, chosen) THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('this server mints in region %s', chosen),
      DETAIL = 'New ids for past times could be equal to ids that the server has minted in this region.',
      HINT = 'Omit the region, or pass a region in which no server mints.';
  END IF;
  SELECT coalesce(b.relation || '.' || quote_ident(b.id_column), 'late_id()') INTO used FROM snowflake.backfills AS b
   WHERE b.region = chosen AND b.shard = wanted_shard AND taken.region IS NULL;
  IF FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('region %s, shard %s is reserved', chosen, wanted_shard),
      DETAIL = format('This combination of region and shard is reserved for %s.', used),
      HINT = CASE WHEN regions > 1 THEN 'Omit the region, or pass another region.' ELSE 'Pass another shard.' END;
  END IF;
  used := snowflake.column_of_origin(chosen, wanted_shard,
                                     CASE WHEN taken.region IS NULL THEN -1
                                          ELSE snowflake.last_id_before(taken.until) END);
  IF used IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('ids of region %s, shard %s already exist', chosen, wanted_shard),
      DETAIL = format('Column %s already contains an id of this region and shard%s.', used,
                      CASE WHEN taken.region IS NULL THEN '' ELSE format(', of %s or later', taken.until) END),
      HINT = CASE WHEN regions > 1 THEN 'Pass a region without ids of this shard.' ELSE 'Pass another shard.' END;
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.refuse_origin(integer, integer, integer, snowflake.backfills) IS
  'Internal: for backfill(): raises an error if this server mints in the region, if this region and shard are '
  'reserved for another column, or if ids with this region and shard exist';

-- If two sessions choose the same region and shard, the primary key refuses one row, and its session chooses again.
CREATE FUNCTION snowflake.reserve_origin(relation regclass, id_column name, wanted_shard integer, wanted_region integer,
                                         OUT chosen integer, OUT upto timestamptz)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  own integer;
  taken snowflake.backfills;
BEGIN
  PERFORM snowflake.check_origin(wanted_region, wanted_shard);
  -- The start of a tick.
  upto := snowflake.time_of(snowflake.last_id_before(clock_timestamp()));
  PERFORM snowflake.observe(snowflake.last_id_before(upto));
  -- Reads the region of the database, which another session may change at any time. After observe(), new ids in every
  -- region have at least the time `upto`.
  own := coalesce((SELECT d.region FROM snowflake.databases AS d WHERE d.database = current_database()),
                  nullif(current_setting('snowflake.region')::integer, -1));

  LOOP
    SELECT * INTO taken FROM snowflake.backfills AS b
     WHERE b.shard = wanted_shard AND b.region = coalesce(wanted_region, b.region)
       AND b.table_oid IS NOT DISTINCT FROM reserve_origin.relation::oid
       AND b.id_column IS NOT DISTINCT FROM reserve_origin.id_column
     ORDER BY began DESC LIMIT 1;
    chosen := coalesce(taken.region, wanted_region, snowflake.free_region(wanted_shard, own));
    PERFORM snowflake.refuse_origin(chosen, wanted_shard, own, taken);
    IF taken.region IS NOT NULL THEN
      UPDATE snowflake.backfills AS b SET until = greatest(b.until, upto)
       WHERE b.region = chosen AND b.shard = wanted_shard;
    ELSE
      -- The column last_position contains -1 until an id with the reserved region and shard exists. A row for late_id()
      -- begins with 0 instead of -1, because the call that adds the row also creates an id.
      INSERT INTO snowflake.backfills (region, shard, relation, id_column, table_oid, last_position, until)
        VALUES (chosen, wanted_shard, relation::text, id_column, relation,
                CASE WHEN relation IS NULL THEN 0 ELSE -1 END, upto)
        ON CONFLICT DO NOTHING;
    END IF;
    EXIT WHEN FOUND;
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake.reserve_origin(regclass, name, integer, integer) IS
  'Internal: for backfill() and late_id(): returns the region for the old rows of a column, and reserves the region '
  'if necessary. Also returns a time that is later than the times of all ids of the old rows';

CREATE FUNCTION snowflake.check_late_time(at timestamptz) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  l CONSTANT snowflake.layout := l FROM snowflake.layout AS l;
BEGIN
  IF NOT (at >= l.epoch AND at <= clock_timestamp()) THEN
    RAISE EXCEPTION USING ERRCODE = 'datetime_field_overflow',
      MESSAGE = format('timestamp "%s" is before the epoch or in the future', at),
      DETAIL = format('The time must be from the epoch (%s) up to now (%s).', l.epoch, clock_timestamp()),
      HINT = 'Pass a time between the epoch and now, or get an id of the present with next_id().';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.check_late_time(timestamptz) IS
  'Internal: for late_id(): raises an error (22008) if a time is before the epoch or in the future';

CREATE FUNCTION snowflake.late_id(at timestamptz, shard integer, region integer DEFAULT NULL) RETURNS bigint
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  l CONSTANT snowflake.layout := l FROM snowflake.layout AS l;
  tick CONSTANT interval := l.tick_ms * interval '1 ms';
  origin snowflake.backfills;
  first bigint;
  last bigint;
BEGIN
  PERFORM snowflake.refuse_null('late_id()', at::text, shard::text);
  PERFORM snowflake.check_origin(region, shard);
  PERFORM snowflake.check_late_time(at);
  LOOP
    SELECT * INTO origin FROM snowflake.backfills AS b
     WHERE b.table_oid IS NULL AND b.shard = late_id.shard AND b.region = coalesce(late_id.region, b.region)
       AND b.until > at
     ORDER BY began DESC LIMIT 1;
    IF NOT FOUND THEN
      SELECT r.chosen, r.upto INTO origin.region, origin.until
        FROM snowflake.reserve_origin(NULL, NULL, shard, region) AS r;
      -- Reserved ids have times before `until`, so a later time `at` becomes the last time unit (tick) before `until`.
      at := least(at, snowflake.time_of(snowflake.last_id_before(origin.until)));
    END IF;
    first := snowflake.make_id(at, shard, 0, origin.region);
    last := first + (1::bigint << l.sequence_bits) - 1;
    INSERT INTO snowflake.late_ids AS t
      SELECT g.id
        FROM (SELECT coalesce(max(id) + 1, first) AS id FROM snowflake.late_ids WHERE id BETWEEN first AND last) AS g
       WHERE g.id <= last
      ON CONFLICT DO NOTHING RETURNING t.id INTO first;
    IF FOUND THEN
      RETURN first;
    END IF;
    -- INSERT added no row, because the time unit (tick) is full, or because another session has inserted the id.
    IF EXISTS (SELECT FROM snowflake.late_ids WHERE id = last) THEN
      at := at + tick;
    END IF;
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake.late_id(timestamptz, integer, integer) IS
  'Returns an id of a past time, for a row that arrives late. If the layout has no regions, pass a shard that no '
  'server uses for new ids. If all ids of this time are used, the id gets the next time unit (tick) with a free id. '
  'The function never returns the same id twice';
REVOKE ALL ON FUNCTION snowflake.late_id(timestamptz, integer, integer) FROM PUBLIC;
