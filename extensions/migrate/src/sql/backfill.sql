-- backfill() gives old rows ids that contain the time of the row. The ids of old rows use a region and shard in which
-- no server mints ids (an origin, see origins.sql). If backfill() used a region and shard in which a server mints, two
-- rows could get the same id.

CREATE FUNCTION snowflake.check_backfilled(relation regclass, id pg_attribute) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF id.atttypid <> 'bigint'::regtype OR id.attgenerated <> '' THEN
    RAISE EXCEPTION USING ERRCODE = 'datatype_mismatch',
      MESSAGE = format('column %s.%I cannot contain ids', relation, id.attname),
      DETAIL = format('The type of the column is %s. Ids need a plain bigint column.',
                      format_type(id.atttypid, id.atttypmod)),
      HINT = 'Add a bigint column for the ids.';
  END IF;
  IF EXISTS (SELECT FROM pg_rewrite WHERE ev_class = relation AND ev_type = '2') THEN
    RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
      MESSAGE = format('table %s has a rule for UPDATE', relation),
      DETAIL = format('With the rule %s, backfill() cannot detect which rows get their ids.',
                      (SELECT string_agg(quote_ident(rulename), ', ' ORDER BY rulename) FROM pg_rewrite
                        WHERE ev_class = relation AND ev_type = '2')),
      HINT = 'Drop the rule, or replace the rule by a trigger.';
  END IF;
  IF NOT EXISTS (SELECT FROM snowflake.minting_columns() AS m
                  WHERE m.relation = check_backfilled.relation AND m.attribute = id.attname) THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('column %s.%I has no default that mints', relation, id.attname),
      DETAIL = 'New rows would have no id.',
      HINT = format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT snowflake.next_id(...);', relation, id.attname);
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.check_backfilled(regclass, pg_attribute) IS
  'Internal: for backfill(): raises an error unless a column can contain ids and has a default that mints';

CREATE FUNCTION snowflake.check_times(relation regclass, made pg_attribute, id_column name, utc boolean) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  type CONSTANT text := format_type(made.atttypid, NULL);
BEGIN
  IF NOT (type = 'timestamp with time zone' AND NOT utc OR type = 'timestamp without time zone' AND utc) THEN
    RAISE EXCEPTION USING ERRCODE = 'datatype_mismatch',
      MESSAGE = format('the time zone of column %s.%I is not known', relation, made.attname),
      DETAIL = format('The type of the column is %s%s.',
                      type, CASE WHEN utc THEN ', but utc => true was passed' ELSE '' END),
      HINT = 'Pass a column of type timestamp with time zone. '
             'If a column without time zone contains times in UTC, pass utc => true.';
  END IF;
  IF NOT EXISTS (SELECT FROM pg_index AS i JOIN pg_class AS c ON c.oid = indexrelid JOIN pg_am AS m ON m.oid = relam
                  WHERE indrelid = relation AND indkey[0] = made.attnum AND indisvalid AND amname = 'btree'
                    AND (indpred IS NULL OR pg_get_expr(indpred, indrelid) = format('(%I IS NULL)', id_column))) THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('column %s.%I has no index', relation, made.attname),
      DETAIL = 'Without an index, every batch would read the whole table.',
      HINT = format('CREATE INDEX CONCURRENTLY ON %s (%I) WHERE %I IS NULL;', relation, made.attname, id_column);
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.check_times(regclass, pg_attribute, name, boolean) IS
  'Internal: for backfill(): raises an error if the time zone of the time column is unknown, or if no btree index '
  'begins with the time column. A partial index is accepted only if it contains all rows without an id, and no other '
  'rows';

-- Checks the arguments of backfill(). Returns `origin_region`, the region for the ids of old rows, and the time `upto`.
-- The procedure backfill() gives ids only to rows whose time is before `upto`.
CREATE FUNCTION snowflake.check_backfill(relation regclass, id_column name, created_at name, shard integer,
                                         region integer, utc boolean, batch integer, OUT origin_region integer,
                                         OUT upto timestamptz)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  id pg_attribute;
  made pg_attribute;
BEGIN
  PERFORM snowflake.refuse_null('backfill()', relation::text, id_column::text, created_at::text, shard::text, utc::text,
                                batch::text);
  PERFORM snowflake.refuse_snapshot('backfill()');
  IF batch NOT BETWEEN 1 AND 100000 THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('batch size %s is out of range', batch),
      DETAIL = 'The batch size must be 1 to 100,000 rows, which are locked at the same time.',
      HINT = 'Omit the batch size to use 1,000 rows.';
  END IF;
  id := snowflake.column_of(relation, id_column);
  made := snowflake.column_of(relation, created_at);
  PERFORM snowflake.refuse_inheritance(
    relation, 'backfill()', 'Move the rows of this table into a plain table, and call backfill() for that table.');
  PERFORM snowflake.check_backfilled(relation, id), snowflake.check_times(relation, made, id.attname, utc);
  -- Only a caller with the rights of the table's owner may reserve a region and a shard.
  PERFORM snowflake.run_as(snowflake.owner_of(relation), format('SELECT FROM %s LIMIT 0', relation));
  SELECT r.chosen, r.upto INTO origin_region, upto
    FROM snowflake.reserve_origin(relation, id_column, shard, region) AS r;
END
$$;
COMMENT ON FUNCTION snowflake.check_backfill(regclass, name, name, integer, integer, boolean, integer) IS
  'Internal: for backfill(): checks the arguments. Returns the region for the new ids, and a time that is later than '
  'the times of all these ids';

CREATE FUNCTION snowflake.lock_batch(relation regclass, id_column name, created_at name, zone text, since timestamptz,
                                     upto timestamptz, batch integer, OUT tids tid[], OUT times timestamptz[],
                                     OUT held timestamptz)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off
  SET datestyle = 'ISO' AS $$
DECLARE
  owner CONSTANT oid := snowflake.owner_of(relation);
  newest timestamptz;
BEGIN
  SELECT a.newest INTO newest FROM snowflake.query_as(owner, format(
      'SELECT max(at)%4$s FROM (SELECT %1$I AS at FROM %2$s WHERE %3$I IS NULL AND %1$I BETWEEN '
      '(%5$L::timestamptz%4$s) AND (%6$L::timestamptz%4$s) ORDER BY 1 LIMIT %7$s) AS s', created_at, relation,
      id_column, zone, since, upto - interval '1 us', batch)) AS a (newest timestamptz);
  IF newest IS NULL THEN
    RETURN;
  END IF;
  SELECT a.tids, a.times INTO tids, times FROM snowflake.query_as(owner, format(
      'SELECT array_agg(tid ORDER BY at, tid), array_agg(at%4$s ORDER BY at, tid) '
      'FROM (SELECT ctid AS tid, %1$I AS at FROM %2$s WHERE %3$I IS NULL AND %1$I BETWEEN (%5$L::timestamptz%4$s) AND '
      '(%6$L::timestamptz%4$s) ORDER BY %1$I LIMIT %7$s %8$s SKIP LOCKED) AS s', created_at, relation, id_column, zone,
      since, newest, batch,
      -- Foreign keys can refer to a column with a unique index, so a new value in the column needs the lock FOR UPDATE.
      CASE WHEN EXISTS (SELECT FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey)
                         WHERE indrelid = relation AND indisunique AND attname = id_column)
           THEN 'FOR UPDATE' ELSE 'FOR NO KEY UPDATE' END)) AS a (tids tid[], times timestamptz[]);
  SELECT a.held INTO held FROM snowflake.query_as(owner, format(
      'SELECT min(%1$I)%4$s FROM %2$s WHERE %3$I IS NULL AND %1$I >= (%5$L::timestamptz%4$s) AND %1$I < '
      '(%6$L::timestamptz%4$s) AND ctid <> ALL (%7$L::tid[])', created_at, relation, id_column, zone, since, newest,
      coalesce(tids, '{}'))) AS a (held timestamptz);
  held := least(held, newest);
END
$$;
COMMENT ON FUNCTION snowflake.lock_batch(regclass, name, name, text, timestamptz, timestamptz, integer) IS
  'Internal: for backfill(): locks the rows of a batch that no other session has locked, and returns their times. '
  'The result also contains the time of the first row that another session has locked. The result is null if there '
  'are no rows';

CREATE FUNCTION snowflake.place_batch(reserved snowflake.backfills, upto timestamptz, tids tid[], times timestamptz[],
                                      held timestamptz, OUT placed tid[], OUT ids bigint[], OUT last_position bigint,
                                      OUT full_at timestamptz)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  layout CONSTANT snowflake.layout := l FROM snowflake.layout AS l;
  -- The first position (id without region and shard) whose time is not before "upto".
  bound CONSTANT bigint := (floor(extract(epoch FROM upto - layout.epoch) * 1000 / layout.tick_ms)::bigint)
    << layout.sequence_bits;
BEGIN
  -- There may be more rows than free ids in the last time units (ticks) before "upto".
  SELECT array_agg(tid ORDER BY number) FILTER (WHERE position < bound), array_agg(snowflake.make_id(
           layout.epoch + (position >> layout.sequence_bits) * layout.tick_ms * interval '1 ms', reserved.shard,
           (position & ((1::bigint << layout.sequence_bits) - 1))::integer, reserved.region)
           ORDER BY number) FILTER (WHERE position < bound),
         coalesce(max(position) FILTER (WHERE position < bound), reserved.last_position),
         min(at) FILTER (WHERE position >= bound)
    INTO placed, ids, last_position, full_at
    FROM (SELECT tid, at, number,
                 number + greatest(reserved.last_position, max(earliest - number) OVER (ORDER BY number)) AS position
            FROM (SELECT t.tid, t.at, t.number,
                         floor(extract(epoch FROM t.at - layout.epoch) * 1000 / layout.tick_ms)::bigint
                           << layout.sequence_bits AS earliest
                    FROM unnest(tids, times) WITH ORDINALITY AS t (tid, at, number)
                   WHERE t.at <= held) AS e) AS p;
END
$$;
COMMENT ON FUNCTION snowflake.place_batch(snowflake.backfills, timestamptz, tid[], timestamptz[], timestamptz) IS
  'Internal: for backfill(): returns ids for a batch of rows. The result also contains the time of the first row for '
  'which the time unit (tick) has no free id';

CREATE FUNCTION snowflake.write_batch(relation regclass, id_column name, tids tid[], ids bigint[]) RETURNS integer
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off
  SET datestyle = 'ISO' AS $$
DECLARE
  done integer;
BEGIN
  -- Counts the rows that have an id after the UPDATE, because a trigger may remove the new id again. If a trigger
  -- removed every new id, backfill() would select the same rows forever.
  SELECT a.done INTO done FROM snowflake.query_as(snowflake.owner_of(relation), format(
      'WITH given AS (UPDATE %1$s AS t SET %2$I = v.id FROM ROWS FROM (unnest(%3$L::tid[]), unnest(%4$L::bigint[])) AS '
      'v (tid, id) WHERE t.ctid = v.tid RETURNING t.%2$I IS NOT DISTINCT FROM v.id AS has_it) SELECT count(*) FILTER '
      '(WHERE has_it) FROM given', relation, id_column, coalesce(tids, '{}'), coalesce(ids, '{}'))) AS a (done bigint);
  IF done <> coalesce(cardinality(tids), 0) THEN
    RAISE EXCEPTION USING ERRCODE = 'triggered_action_exception',
      MESSAGE = format('%s of %s rows of table %s did not get an id',
                       cardinality(tids) - done, cardinality(tids), relation),
      DETAIL = 'A trigger before UPDATE has skipped these rows, or has changed their ids.',
      HINT = 'Disable the trigger, and call backfill() again.';
  END IF;
  RETURN done;
END
$$;
COMMENT ON FUNCTION snowflake.write_batch(regclass, name, tid[], bigint[]) IS
  'Internal: for backfill(): writes the ids of a batch. Raises an error if a trigger changes the ids';

-- A batch ends before the first row that another session has locked. Because backfill() does not wait for locked rows,
-- it cannot deadlock.
CREATE FUNCTION snowflake.backfill_batch(relation regclass, id_column name, created_at name, origin_shard integer,
                                         origin_region integer, upto timestamptz, utc boolean, batch integer)
  RETURNS integer
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off
  SET datestyle = 'ISO' AS $$
DECLARE
  layout CONSTANT snowflake.layout := l FROM snowflake.layout AS l;
  reserved snowflake.backfills;
  held timestamptz;
  full_at timestamptz;
  tids tid[];
  times timestamptz[];
  ids bigint[];
  done integer;
BEGIN
  PERFORM snowflake.refuse_snapshot('backfill()');
  SELECT * INTO reserved FROM snowflake.backfills AS b
   WHERE b.region = origin_region AND b.shard = origin_shard FOR UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('region %s, shard %s is no longer reserved', origin_region, origin_shard),
      DETAIL = 'The row in snowflake.backfills was deleted.', HINT = 'Call backfill() again.';
  END IF;
  SELECT * INTO tids, times, held
    FROM snowflake.lock_batch(relation, id_column, created_at, CASE WHEN utc THEN ' AT TIME ZONE ''UTC''' ELSE '' END,
                              greatest(layout.epoch, reserved.done_until), upto, batch);
  IF held IS NULL THEN
    UPDATE snowflake.backfills SET finished = clock_timestamp() WHERE region = origin_region AND shard = origin_shard;
    RETURN 0;
  END IF;
  SELECT * INTO tids, ids, reserved.last_position, full_at
    FROM snowflake.place_batch(reserved, upto, tids, times, held);
  done := snowflake.write_batch(relation, id_column, tids, ids);
  UPDATE snowflake.backfills AS b
     SET last_position = reserved.last_position, done_until = least(held, full_at), rows = b.rows + done,
         finished = NULL
   WHERE b.region = origin_region AND b.shard = origin_shard;
  RETURN CASE WHEN done > 0 THEN done WHEN full_at IS NOT NULL THEN 0 ELSE -1 END;
END
$$;
COMMENT ON FUNCTION snowflake.backfill_batch(regclass, name, name, integer, integer, timestamptz, boolean, integer) IS
  'Internal: for backfill(): gives ids to one batch of rows. Returns the number of rows in the batch, -1 if another '
  'session has locked the next row, or 0 if no more rows can get an id';

CREATE FUNCTION snowflake.tell_backfill(relation regclass, id_column name, created_at name, utc boolean, done bigint)
  RETURNS void
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off AS $$
DECLARE
  zone CONSTANT text := CASE WHEN utc THEN ' AT TIME ZONE ''UTC''' ELSE '' END;
  early bigint;
  future bigint;
  timeless bigint;
  late bigint;
BEGIN
  SELECT a.early, a.future, a.timeless, a.late INTO early, future, timeless, late
    FROM snowflake.query_as(snowflake.owner_of(relation), format(
      'SELECT count(*) FILTER (WHERE at < epoch), count(*) FILTER (WHERE at > clock_timestamp()), count(*) FILTER '
      '(WHERE at IS NULL), count(*) FILTER (WHERE at BETWEEN epoch AND clock_timestamp()) FROM (SELECT %I%s AS at FROM '
      '%s WHERE %I IS NULL) AS s, snowflake.layout', created_at, zone, relation, id_column))
      AS a (early bigint, future bigint, timeless bigint, late bigint);
  RAISE NOTICE USING MESSAGE = format('%s rows of table %s got ids with the times of the rows', done, relation),
    DETAIL = format('%s rows have no id: '
                    '%s have a time before the epoch, %s have a time in the future, %s have no time, and %s were '
                    'inserted or changed too late for this call.',
                    early + future + timeless + late, early,
                    future, timeless, late),
    HINT = CASE WHEN early + future + timeless + late > 0
                THEN format('Delete these rows, or give them ids of the present: UPDATE %s SET %I = DEFAULT WHERE '
                            '%2$I IS NULL;',
                            relation, id_column)
                ELSE 'Drop the index that you created for backfill(), and make the column UNIQUE and NOT NULL.' END;
END
$$;
COMMENT ON FUNCTION snowflake.tell_backfill(regclass, name, name, boolean, bigint) IS
  'Internal: for backfill(): raises a notice with the number of filled rows, and the number of remaining rows by '
  'reason';

-- A procedure with a SET clause cannot commit, so backfill() has no SET clause and qualifies every name with its
-- schema.
CREATE PROCEDURE snowflake.backfill(relation regclass, id_column name, created_at name, shard integer,
                                    region integer DEFAULT NULL, utc boolean DEFAULT false, batch integer DEFAULT 1000)
  LANGUAGE plpgsql AS $$
DECLARE
  origin_region pg_catalog.int4;
  upto pg_catalog.timestamptz;
  done pg_catalog.int4;
  total pg_catalog.int8 := 0;
  told pg_catalog.timestamptz := pg_catalog.clock_timestamp();
BEGIN
  SELECT c.origin_region, c.upto INTO origin_region, upto
    FROM snowflake.check_backfill(relation, id_column, created_at, shard, region, utc, batch) AS c;
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
      RAISE NOTICE '% rows of table % have got their ids%', total, relation,
        CASE WHEN done OPERATOR(pg_catalog.<) 0 THEN '; another transaction holds a lock on the next row' ELSE '' END;
    END IF;
  END LOOP;
  PERFORM snowflake.tell_backfill(relation, id_column, created_at, utc, total);
END
$$;
COMMENT ON PROCEDURE snowflake.backfill(regclass, name, name, integer, integer, boolean, integer) IS
  'Gives ids to rows without an id, oldest row first. The time of an id is the time in another column of the row. The '
  'ids have a region that is reserved for this table, or a reserved shard if the layout has no regions. Commits each '
  'batch, and does not wait for locked rows within a batch. If a call was interrupted, call backfill() again to '
  'continue. Rows from before the epoch, from the future or without a time are skipped and counted';
