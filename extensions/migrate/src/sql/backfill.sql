-- Gives old rows ids of their own time. These need an *origin*: a region and a shard without minted ids. In the table's
-- own origin, a row of another table may have an id of this time.
--
-- The ids are earlier than "until". The high-water mark is raised to "until" first, so ids that are minted later are
-- greater in every region. The search for existing ids of the origin comes after the mark was raised.

CREATE FUNCTION snowflake.owns_shard(shard integer) RETURNS boolean
  LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
  SELECT owned = 'all'
      OR EXISTS (SELECT FROM regexp_matches(owned, '(\d+)(?:\s*-\s*(\d+))?', 'g') AS m
                  WHERE shard BETWEEN m[1]::integer AND coalesce(m[2], m[1])::integer)
    FROM coalesce((SELECT d.owned_shards FROM snowflake.databases AS d WHERE d.database = current_database()),
                  current_setting('snowflake.owned_shards')) AS owned
$$;
COMMENT ON FUNCTION snowflake.owns_shard(integer) IS 'Internal: for backfill(): whether the database owns a shard';

CREATE FUNCTION snowflake.has_ids_of_origin(relation regclass, id_column name, region integer, shard integer, after bigint) RETURNS boolean
  AS 'MODULE_PATHNAME', 'snowflake_has_ids_of_origin'
  LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.has_ids_of_origin(regclass, name, integer, integer, bigint) IS
  'Internal: for backfill(): whether a column of a table and its child tables has an id of a region and shard that is '
  'greater than another. It reads uncommitted rows, and evaluates no expression';

CREATE FUNCTION snowflake.column_of_origin(region integer, shard integer, after bigint) RETURNS text
  LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
  SELECT format('%s.%I', m.relation, m.attribute)
    FROM snowflake.minting_columns() AS m
   WHERE NOT EXISTS (SELECT FROM pg_inherits JOIN snowflake.minting_columns() AS p ON p.relation = inhparent
                      WHERE inhrelid = m.relation AND p.attribute = m.attribute)
     AND snowflake.has_ids_of_origin(m.relation, m.attribute, region, shard, after)
   LIMIT 1
$$;
COMMENT ON FUNCTION snowflake.column_of_origin(integer, integer, bigint) IS
  'Internal: for backfill(): a column that mints and has an id of a region and shard, greater than another; null if '
  'there is none';
REVOKE ALL ON FUNCTION snowflake.has_ids_of_origin(regclass, name, integer, integer, bigint),
  snowflake.column_of_origin(integer, integer, bigint) FROM PUBLIC;

CREATE FUNCTION snowflake.check_origin(wanted_region integer, wanted_shard integer) RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  l CONSTANT snowflake.layout := l FROM snowflake.layout AS l;
BEGIN
  IF wanted_shard NOT BETWEEN 0 AND l.shards - 1 OR wanted_region NOT BETWEEN 0 AND l.regions - 1 THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('%sshard %s is out of range', coalesce('region ' || wanted_region || ', ', ''), wanted_shard),
      DETAIL = format('The layout has regions 0 to %s and shards 0 to %s.', l.regions - 1, l.shards - 1),
      HINT = 'Pass a shard, and a region, of the layout.';
  END IF;
  IF l.regions = 1 AND snowflake.owns_shard(wanted_shard) THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('this server may mint for shard %s', wanted_shard),
      DETAIL = 'The layout has no regions: old rows need a shard in which no id was minted.',
      HINT = 'Choose such a shard, remove it from "snowflake.owned_shards" on every server, reload, and connect again.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.check_origin(integer, integer) IS
  'Internal: for backfill(): an error if ids of a shard and a region, which may be null, are not possible';

-- If two sessions choose the same origin, the primary key refuses one of them, and it chooses again.
CREATE FUNCTION snowflake.reserve_origin(relation regclass, id_column name, wanted_shard integer, wanted_region integer,
                                         OUT chosen integer, OUT upto timestamptz)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  regions CONSTANT integer := l.regions FROM snowflake.layout AS l;
  leased CONSTANT boolean := current_setting('snowflake.region')::integer < 0;
  own integer;
  taken snowflake.backfills;
  used text;
BEGIN
  PERFORM snowflake.check_origin(wanted_region, wanted_shard);
  -- The start of a tick.
  upto := snowflake.time_of(snowflake.last_id_before(clock_timestamp()));
  PERFORM snowflake.observe(snowflake.last_id_before(upto));
  -- The region of the database. If a newer session changes it, ids of the new region are greater than "upto".
  own := d.region FROM snowflake.databases AS d WHERE d.database = current_database();

  LOOP
    SELECT * INTO taken FROM snowflake.backfills AS b
     WHERE b.shard = wanted_shard AND b.region = coalesce(wanted_region, b.region) AND b.table_oid IS NOT DISTINCT FROM reserve_origin.relation::oid
       AND b.id_column IS NOT DISTINCT FROM reserve_origin.id_column
     ORDER BY began DESC LIMIT 1;
    chosen := CASE WHEN taken.region IS NOT NULL THEN taken.region
                   WHEN wanted_region IS NOT NULL THEN wanted_region
                   WHEN regions = 1 THEN 0
                   WHEN NOT leased THEN (SELECT max(r) FROM generate_series(0, regions - 1) AS r
                                          WHERE r <> own AND NOT EXISTS (SELECT FROM snowflake.backfills AS b WHERE b.region = r AND b.shard = wanted_shard)
                                            AND snowflake.column_of_origin(r, wanted_shard, -1) IS NULL) END;
    IF chosen IS NULL THEN
      RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
        MESSAGE = 'no free region was found',
        DETAIL = CASE WHEN leased THEN 'Regions are leased here, each of them by some server, sooner or later.'
                      ELSE format('There are ids of shard %s of all regions but %s, which is this server''s.', wanted_shard, own) END,
        HINT = CASE WHEN leased THEN 'Choose a region that no server has in "snowflake.leased_regions", and pass it: region => N.'
                    ELSE 'Pass another shard.' END;
    END IF;
    IF regions > 1 AND chosen = coalesce(own, chosen) THEN
      RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
        MESSAGE = format('this server mints in region %s', chosen),
        DETAIL = 'An id of its region and of a past time may have been minted.',
        HINT = 'Leave the region out, or pass one in which no server mints.';
    END IF;
    SELECT coalesce(b.relation || '.' || quote_ident(b.id_column), 'late_id()') INTO used FROM snowflake.backfills AS b
     WHERE b.region = chosen AND b.shard = wanted_shard AND taken.region IS NULL;
    IF FOUND THEN
      RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
        MESSAGE = format('region %s, shard %s is reserved', chosen, wanted_shard),
        DETAIL = format('%s gets ids of it.', used),
        HINT = CASE WHEN regions > 1 THEN 'Leave the region out, or pass another.' ELSE 'Pass another shard.' END;
    END IF;
    used := snowflake.column_of_origin(chosen, wanted_shard, CASE WHEN taken.region IS NULL THEN -1 ELSE snowflake.last_id_before(taken.until) END);
    IF used IS NOT NULL THEN
      RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
        MESSAGE = format('there are ids of region %s, shard %s', chosen, wanted_shard),
        DETAIL = format('%s has one%s, which this call did not give.', used,
                        CASE WHEN taken.region IS NULL THEN '' ELSE format(' of %s or later', taken.until) END),
        HINT = CASE WHEN regions > 1 THEN 'Pass a region of which there are none.' ELSE 'Pass another shard.' END;
    END IF;
    IF taken.region IS NOT NULL THEN
      UPDATE snowflake.backfills AS b SET until = greatest(b.until, upto) WHERE b.region = chosen AND b.shard = wanted_shard;
    ELSE
      -- The origin of late_id() is in use from now on.
      INSERT INTO snowflake.backfills (region, shard, relation, id_column, table_oid, last_position, until)
        VALUES (chosen, wanted_shard, relation::text, id_column, relation, CASE WHEN relation IS NULL THEN 0 ELSE -1 END, upto)
        ON CONFLICT DO NOTHING;
    END IF;
    EXIT WHEN FOUND;
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake.reserve_origin(regclass, name, integer, integer) IS
  'Internal: for backfill() and late_id(): the region for a column''s old rows, which it reserves if necessary, and '
  'the time before which its ids are';

CREATE FUNCTION snowflake.late_id(at timestamptz, shard integer, region integer DEFAULT NULL) RETURNS bigint
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  l CONSTANT snowflake.layout := l FROM snowflake.layout AS l;
  tick CONSTANT interval := l.tick_ms * interval '1 ms';
  origin snowflake.backfills;
  first bigint;
  last bigint;
BEGIN
  PERFORM snowflake.refuse_null('late_id()', at::text, shard::text);
  PERFORM snowflake.check_origin(region, shard);
  IF NOT (at >= l.epoch AND at <= clock_timestamp()) THEN
    RAISE EXCEPTION USING ERRCODE = 'datetime_field_overflow',
      MESSAGE = format('timestamp "%s" is not the time of a late row', at),
      DETAIL = format('The epoch is %s, the clock shows %s.', l.epoch, clock_timestamp()),
      HINT = 'Pass a time between the epoch and now, or mint an id of the present with next_id().';
  END IF;
  LOOP
    SELECT * INTO origin FROM snowflake.backfills AS b
     WHERE b.table_oid IS NULL AND b.shard = late_id.shard AND b.region = coalesce(late_id.region, b.region) AND b.until > at
     ORDER BY began DESC LIMIT 1;
    IF NOT FOUND THEN
      SELECT r.chosen, r.upto INTO origin.region, origin.until FROM snowflake.reserve_origin(NULL, NULL, shard, region) AS r;
      -- A time within the current tick.
      at := least(at, snowflake.time_of(snowflake.last_id_before(origin.until)));
    END IF;
    first := snowflake.make_id(at, shard, 0, origin.region);
    last := first + (1::bigint << l.sequence_bits) - 1;
    INSERT INTO snowflake.late_ids AS t
      SELECT g.id FROM (SELECT coalesce(max(id) + 1, first) AS id FROM snowflake.late_ids WHERE id BETWEEN first AND last) AS g
       WHERE g.id <= last
      ON CONFLICT DO NOTHING RETURNING t.id INTO first;
    IF FOUND THEN
      RETURN first;
    END IF;
    -- The tick is full, or another session was faster.
    IF EXISTS (SELECT FROM snowflake.late_ids WHERE id = last) THEN
      at := at + tick;
    END IF;
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake.late_id(timestamptz, integer, integer) IS
  'Gives an id of a past time to a row that comes late. Without regions in the layout, pass a shard that is reserved '
  'for late ids. The id has the first tick from that time that has room. It never gives an id twice';
REVOKE ALL ON FUNCTION snowflake.late_id(timestamptz, integer, integer) FROM PUBLIC;

-- Checks the arguments of backfill(), and returns the region of the origin and the time before which it works.
CREATE FUNCTION snowflake.check_backfill(relation regclass, id_column name, created_at name, shard integer, region integer,
                                         utc boolean, batch integer, OUT origin_region integer, OUT upto timestamptz)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  id pg_attribute;
  made pg_attribute;
  type text;
BEGIN
  PERFORM snowflake.refuse_null('backfill()', relation::text, id_column::text, created_at::text, shard::text, utc::text, batch::text);
  PERFORM snowflake.refuse_snapshot('backfill()');
  IF batch NOT BETWEEN 1 AND 100000 THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('a batch of %s is out of range', batch),
      DETAIL = 'A batch has 1 to 100,000 rows, which are locked together.', HINT = 'Leave it out for 1,000.';
  END IF;
  id := snowflake.column_of(relation, id_column);
  made := snowflake.column_of(relation, created_at);
  PERFORM snowflake.refuse_inheritance(relation, 'backfill()', 'Move its rows into a plain table first.');
  IF id.atttypid <> 'bigint'::regtype OR id.attgenerated <> '' THEN
    RAISE EXCEPTION USING ERRCODE = 'datatype_mismatch',
      MESSAGE = format('%s.%I cannot hold ids', relation, id_column),
      DETAIL = format('It is of type %s; ids are bigint.', format_type(id.atttypid, id.atttypmod)),
      HINT = 'Add a bigint column for them.';
  END IF;
  IF EXISTS (SELECT FROM pg_rewrite WHERE ev_class = relation AND ev_type = '2') THEN
    RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
      MESSAGE = format('table %s has a rule for UPDATE', relation),
      DETAIL = format('It is %s. It hides which rows get their id.',
                      (SELECT string_agg(quote_ident(rulename), ', ' ORDER BY rulename) FROM pg_rewrite WHERE ev_class = relation AND ev_type = '2')),
      HINT = 'Drop the rule, or replace it by a trigger.';
  END IF;
  IF NOT EXISTS (SELECT FROM snowflake.minting_columns() AS m WHERE m.relation = check_backfill.relation AND m.attribute = id_column) THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('%s.%I has no default that mints', relation, id_column),
      DETAIL = 'New rows would not have an id.',
      HINT = format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT snowflake.next_id(...);', relation, id_column);
  END IF;
  type := format_type(made.atttypid, NULL);
  IF NOT (type = 'timestamp with time zone' AND NOT utc OR type = 'timestamp without time zone' AND utc) THEN
    RAISE EXCEPTION USING ERRCODE = 'datatype_mismatch',
      MESSAGE = format('%s.%I is not a time with a known zone', relation, created_at),
      DETAIL = format('It is of type %s%s.', type, CASE WHEN utc THEN ', and said to be in UTC' ELSE '' END),
      HINT = 'Pass a timestamp with time zone. If the times of a type without zone are in UTC, pass utc => true.';
  END IF;
  IF NOT EXISTS (SELECT FROM pg_index AS i JOIN pg_class AS c ON c.oid = indexrelid JOIN pg_am AS m ON m.oid = relam
                  WHERE indrelid = relation AND indkey[0] = made.attnum AND indisvalid AND amname = 'btree'
                    AND (indpred IS NULL OR pg_get_expr(indpred, indrelid) = format('(%I IS NULL)', id_column))) THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('%s.%I has no index', relation, created_at),
      DETAIL = 'Every batch would read the whole table.',
      HINT = format('CREATE INDEX CONCURRENTLY ON %s (%I) WHERE %I IS NULL;', relation, created_at, id_column);
  END IF;
  -- A caller without the owner's rights must not reserve an origin.
  PERFORM snowflake.run_as(snowflake.owner_of(relation), format('SELECT FROM %s LIMIT 0', relation));
  SELECT r.chosen, r.upto INTO origin_region, upto FROM snowflake.reserve_origin(relation, id_column, shard, region) AS r;
END
$$;
COMMENT ON FUNCTION snowflake.check_backfill(regclass, name, name, integer, integer, boolean, integer) IS
  'Internal: for backfill(): checks its arguments; returns the region of the ids, and the time before which they are';

-- Does not wait for locked rows, so it cannot deadlock: the batch ends before the first locked row.
CREATE FUNCTION snowflake.backfill_batch(relation regclass, id_column name, created_at name, origin_shard integer, origin_region integer,
                                         upto timestamptz, utc boolean, batch integer)
  RETURNS integer
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET datestyle = 'ISO'
AS $$
DECLARE
  layout CONSTANT snowflake.layout := l FROM snowflake.layout AS l;
  reserved snowflake.backfills;
  zone CONSTANT text := CASE WHEN utc THEN ' AT TIME ZONE ''UTC''' ELSE '' END;
  owner CONSTANT oid := snowflake.owner_of(relation);
  -- The first position that is not before "upto".
  bound CONSTANT bigint := (floor(extract(epoch FROM upto - layout.epoch) * 1000 / layout.tick_ms)::bigint) << layout.sequence_bits;
  since timestamptz;
  newest timestamptz;
  held timestamptz;
  full_at timestamptz;
  tids tid[];
  times timestamptz[];
  ids bigint[];
  done integer;
BEGIN
  PERFORM snowflake.refuse_snapshot('backfill()');
  SELECT * INTO reserved FROM snowflake.backfills AS b WHERE b.region = origin_region AND b.shard = origin_shard FOR UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('region %s, shard %s is not reserved any more', origin_region, origin_shard),
      DETAIL = 'Its row in snowflake.backfills was deleted.', HINT = 'Call backfill() again.';
  END IF;
  since := greatest(layout.epoch, reserved.done_until);
  SELECT a.newest INTO newest FROM snowflake.query_as(owner, format(
      'SELECT max(at)%4$s FROM (SELECT %1$I AS at FROM %2$s WHERE %3$I IS NULL AND %1$I BETWEEN (%5$L::timestamptz%4$s) AND (%6$L::timestamptz%4$s) '
      'ORDER BY 1 LIMIT %7$s) AS s', created_at, relation, id_column, zone, since, upto - interval '1 us', batch)) AS a (newest timestamptz);
  IF newest IS NULL THEN
    UPDATE snowflake.backfills SET finished = clock_timestamp() WHERE region = origin_region AND shard = origin_shard;
    RETURN 0;
  END IF;
  SELECT a.tids, a.times INTO tids, times FROM snowflake.query_as(owner, format(
      'SELECT array_agg(tid ORDER BY at, tid), array_agg(at%4$s ORDER BY at, tid) '
      'FROM (SELECT ctid AS tid, %1$I AS at FROM %2$s WHERE %3$I IS NULL AND %1$I BETWEEN (%5$L::timestamptz%4$s) AND (%6$L::timestamptz%4$s) '
      'ORDER BY %1$I LIMIT %7$s %8$s SKIP LOCKED) AS s', created_at, relation, id_column, zone, since, newest, batch,
      -- A column with a unique index is part of what foreign keys lock.
      CASE WHEN EXISTS (SELECT FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey)
                         WHERE indrelid = relation AND indisunique AND attname = id_column)
           THEN 'FOR UPDATE' ELSE 'FOR NO KEY UPDATE' END)) AS a (tids tid[], times timestamptz[]);
  SELECT a.held INTO held FROM snowflake.query_as(owner, format(
      'SELECT min(%1$I)%4$s FROM %2$s WHERE %3$I IS NULL AND %1$I >= (%5$L::timestamptz%4$s) AND %1$I < (%6$L::timestamptz%4$s) AND ctid <> ALL (%7$L::tid[])',
      created_at, relation, id_column, zone, since, newest, coalesce(tids, '{}'))) AS a (held timestamptz);
  held := least(held, newest);

  -- The last ticks may have no room for all their rows.
  SELECT array_agg(tid ORDER BY number) FILTER (WHERE position < bound), array_agg(snowflake.make_id(
           layout.epoch + (position >> layout.sequence_bits) * layout.tick_ms * interval '1 ms', origin_shard,
           (position & ((1::bigint << layout.sequence_bits) - 1))::integer, origin_region) ORDER BY number) FILTER (WHERE position < bound),
         coalesce(max(position) FILTER (WHERE position < bound), reserved.last_position), min(at) FILTER (WHERE position >= bound)
    INTO tids, ids, reserved.last_position, full_at
    FROM (SELECT tid, at, number, number + greatest(reserved.last_position, max(earliest - number) OVER (ORDER BY number)) AS position
            FROM (SELECT t.tid, t.at, t.number,
                         floor(extract(epoch FROM t.at - layout.epoch) * 1000 / layout.tick_ms)::bigint << layout.sequence_bits AS earliest
                    FROM unnest(tids, times) WITH ORDINALITY AS t (tid, at, number)
                   WHERE t.at <= held) AS e) AS p;
  -- Counts the rows that have an id afterwards. A trigger may remove the id again. Without this count, the loop would
  -- select such rows forever.
  SELECT a.done INTO done FROM snowflake.query_as(owner, format(
      'WITH given AS (UPDATE %1$s AS t SET %2$I = v.id FROM ROWS FROM (unnest(%3$L::tid[]), unnest(%4$L::bigint[])) AS v (tid, id) '
      'WHERE t.ctid = v.tid RETURNING t.%2$I IS NOT DISTINCT FROM v.id AS has_it) SELECT count(*) FILTER (WHERE has_it) FROM given',
      relation, id_column, coalesce(tids, '{}'), coalesce(ids, '{}'))) AS a (done bigint);
  IF done <> coalesce(cardinality(tids), 0) THEN
    RAISE EXCEPTION USING ERRCODE = 'triggered_action_exception',
      MESSAGE = format('%s of %s rows of %s did not get an id', cardinality(tids) - done, cardinality(tids), relation),
      DETAIL = 'A trigger before UPDATE has left them out, or changed their ids.',
      HINT = 'Disable the trigger, and call backfill() again.';
  END IF;
  UPDATE snowflake.backfills AS b SET last_position = reserved.last_position, done_until = least(held, full_at), rows = b.rows + done, finished = NULL
   WHERE b.region = origin_region AND b.shard = origin_shard;
  RETURN CASE WHEN done > 0 THEN done WHEN full_at IS NOT NULL THEN 0 ELSE -1 END;
END
$$;
COMMENT ON FUNCTION snowflake.backfill_batch(regclass, name, name, integer, integer, timestamptz, boolean, integer) IS
  'Internal: for backfill(): gives one batch of rows their ids. Returns their number, -1 if another session holds the '
  'next row, 0 at the end';

CREATE FUNCTION snowflake.tell_backfill(relation regclass, id_column name, created_at name, utc boolean, done bigint) RETURNS void
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off
AS $$
DECLARE
  zone CONSTANT text := CASE WHEN utc THEN ' AT TIME ZONE ''UTC''' ELSE '' END;
  early bigint;
  future bigint;
  timeless bigint;
  late bigint;
BEGIN
  SELECT a.early, a.future, a.timeless, a.late INTO early, future, timeless, late
    FROM snowflake.query_as(snowflake.owner_of(relation), format(
      'SELECT count(*) FILTER (WHERE at < epoch), count(*) FILTER (WHERE at > clock_timestamp()), count(*) FILTER (WHERE at IS NULL), '
      'count(*) FILTER (WHERE at BETWEEN epoch AND clock_timestamp()) '
      'FROM (SELECT %I%s AS at FROM %s WHERE %I IS NULL) AS s, snowflake.layout', created_at, zone, relation, id_column))
      AS a (early bigint, future bigint, timeless bigint, late bigint);
  RAISE NOTICE USING MESSAGE = format('%s rows of %s were given ids of their time', done, relation),
    DETAIL = format('Without an id are %s rows: %s from before the epoch, %s from the future, %s without a time, %s that came, or came to be of a time, '
                    'which had been done.', early + future + timeless + late, early, future, timeless, late),
    HINT = CASE WHEN early + future + timeless + late > 0
                THEN format('Delete them, or give them ids of now: UPDATE %s SET %I = DEFAULT WHERE %2$I IS NULL;', relation, id_column)
                ELSE 'Drop the index that served this, and make the column unique and NOT NULL.' END;
END
$$;
COMMENT ON FUNCTION snowflake.tell_backfill(regclass, name, name, boolean, bigint) IS
  'Internal: for backfill(): a notice of the filled rows, the remaining rows and the reasons';

-- Without a SET clause, with which it could not commit: everything is named with its schema.
CREATE PROCEDURE snowflake.backfill(relation regclass, id_column name, created_at name, shard integer, region integer DEFAULT NULL,
                                    utc boolean DEFAULT false, batch integer DEFAULT 1000)
  LANGUAGE plpgsql
AS $$
DECLARE
  origin_region pg_catalog.int4;
  upto pg_catalog.timestamptz;
  done pg_catalog.int4;
  total pg_catalog.int8 := 0;
  told pg_catalog.timestamptz := pg_catalog.clock_timestamp();
BEGIN
  SELECT c.origin_region, c.upto INTO origin_region, upto FROM snowflake.check_backfill(relation, id_column, created_at, shard, region, utc, batch) AS c;
  COMMIT;
  LOOP
    done := snowflake.backfill_batch(relation, id_column, created_at, shard, origin_region, upto, utc, batch);
    COMMIT;
    EXIT WHEN done OPERATOR(pg_catalog.=) 0;
    IF done OPERATOR(pg_catalog.<) 0 THEN
      PERFORM pg_catalog.pg_sleep(0.01);
    ELSE
      total := total OPERATOR(pg_catalog.+) done::pg_catalog.int8;
    END IF;
    IF pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) told OPERATOR(pg_catalog.>) '5 s'::pg_catalog.interval THEN
      told := pg_catalog.clock_timestamp();
      RAISE NOTICE '% rows of % have their ids%', total, relation,
        CASE WHEN done OPERATOR(pg_catalog.<) 0 THEN '; the next one is held by another transaction' ELSE '' END;
    END IF;
  END LOOP;
  PERFORM snowflake.tell_backfill(relation, id_column, created_at, utc, total);
END
$$;
COMMENT ON PROCEDURE snowflake.backfill(regclass, name, name, integer, integer, boolean, integer) IS
  'Gives rows without an id one of the time in another column, oldest first, in a region that is reserved for this '
  'table (in layouts without regions: a shard). It commits each batch, waits for no row in it, and continues where it '
  'stopped. It leaves and counts rows from before the epoch, from the future or without a time';
