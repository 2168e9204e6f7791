-- Ids of their own time for rows that were there before. They are of a place, a region and a shard, in which nobody mints:
-- an id of this time and the table's own shard may have been given to a row of another table.

CREATE TABLE snowflake.backfills (
  region integer NOT NULL,
  shard integer NOT NULL,
  relation text NOT NULL,
  id_column name NOT NULL,
  table_oid oid NOT NULL,      -- a table made anew under the same name gets another place
  last_position bigint NOT NULL DEFAULT -1,
  done_until timestamptz,
  rows bigint NOT NULL DEFAULT 0,
  began timestamptz NOT NULL DEFAULT clock_timestamp(),
  finished timestamptz,
  PRIMARY KEY (region, shard));
COMMENT ON TABLE snowflake.backfills IS
  'The places, region and shard, that backfill() has given ids of, each for one table, for ever; how far it has come, and when it finished. No server may mint in one of them';
SELECT pg_catalog.pg_extension_config_dump('snowflake.backfills', '');

-- A dump brings its places with it. That this server mints in one of them is said when it is restored.
CREATE FUNCTION snowflake.warn_of_place() RETURNS trigger
  LANGUAGE plpgsql PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF (SELECT regions > 1 FROM snowflake.layout) AND NEW.region::text = current_setting('snowflake.region') THEN
    RAISE WARNING USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('this server mints in region %s, of which rows have ids by backfill()', NEW.region),
      DETAIL = format('Rows of %s have ids of region %s and shard %s.', NEW.relation, NEW.region, NEW.shard),
      HINT = 'Give the server another snowflake.region before anything is minted.';
  END IF;
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION snowflake.warn_of_place() IS 'Internal: behind the table snowflake.backfills';
CREATE FUNCTION snowflake.place_reserved() RETURNS trigger
  AS 'MODULE_PATHNAME', 'snowflake_place_reserved'
  LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.place_reserved() IS 'Internal: behind the table snowflake.backfills';
CREATE TRIGGER place_reserved AFTER INSERT OR DELETE ON snowflake.backfills FOR EACH ROW EXECUTE FUNCTION snowflake.place_reserved();
ALTER TABLE snowflake.backfills ENABLE ALWAYS TRIGGER place_reserved;
CREATE TRIGGER warn_of_place AFTER INSERT ON snowflake.backfills FOR EACH ROW EXECUTE FUNCTION snowflake.warn_of_place();

-- Whoever may write every table (pg_write_all_data) or backfill (the owner of the database) takes no place back: its ids would be
-- given again. The owner of the table may.
CREATE FUNCTION snowflake.keep_place() RETURNS trigger
  LANGUAGE plpgsql PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    IF (NEW.region, NEW.shard) = (OLD.region, OLD.shard) AND NEW.last_position >= OLD.last_position THEN
      RETURN NEW;
    END IF;
  END IF;
  IF NOT pg_has_role(current_user, (SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'USAGE') THEN
    RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
      MESSAGE = format('region %s, shard %s stays in snowflake.backfills', OLD.region, OLD.shard),
      DETAIL = format('Rows of %s have ids of it, up to position %s.', OLD.relation, OLD.last_position),
      HINT = 'Leave the row as it is.';
  END IF;
  RETURN CASE TG_OP WHEN 'UPDATE' THEN NEW ELSE OLD END;
END
$$;
COMMENT ON FUNCTION snowflake.keep_place() IS 'Internal: behind the table snowflake.backfills';
CREATE TRIGGER keep_place BEFORE UPDATE OR DELETE ON snowflake.backfills FOR EACH ROW EXECUTE FUNCTION snowflake.keep_place();
ALTER TABLE snowflake.backfills ENABLE ALWAYS TRIGGER keep_place;

CREATE FUNCTION snowflake.owns_shard(shard integer) RETURNS boolean
  LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
  SELECT current_setting('snowflake.owned_shards') = 'all'
      OR EXISTS (SELECT FROM regexp_matches(current_setting('snowflake.owned_shards'), '(\d+)(?:\s*-\s*(\d+))?', 'g') AS m
                  WHERE shard BETWEEN m[1]::integer AND coalesce(m[2], m[1])::integer)
$$;
COMMENT ON FUNCTION snowflake.owns_shard(integer) IS 'Internal: for backfill(): whether snowflake.owned_shards names a shard';

CREATE FUNCTION snowflake.reserve_place(relation regclass, id pg_attribute, wanted_shard integer, wanted_region integer) RETURNS integer
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  regions CONSTANT integer := l.regions FROM snowflake.layout AS l;
  shards CONSTANT integer := l.shards FROM snowflake.layout AS l;
  leased CONSTANT boolean := current_setting('snowflake.region')::integer < 0;
  own CONSTANT integer := CASE WHEN leased THEN snowflake.region_of(snowflake.next_id(
                                 (SELECT min(s) FROM generate_series(0, shards - 1) AS s WHERE snowflake.owns_shard(s))))
                               ELSE current_setting('snowflake.region')::integer END;
  taken snowflake.backfills;
  chosen integer := wanted_region;
BEGIN
  LOCK TABLE snowflake.backfills IN SHARE ROW EXCLUSIVE MODE;
  SELECT * INTO taken FROM snowflake.backfills AS b
   WHERE b.table_oid = id.attrelid AND b.id_column = id.attname AND b.shard = wanted_shard AND b.region = coalesce(wanted_region, b.region);
  IF FOUND THEN
    chosen := taken.region;
  ELSIF regions > 1 AND chosen IS NULL AND NOT leased THEN
    chosen := max(r) FROM generate_series(0, regions - 1) AS r
               WHERE r <> own AND NOT EXISTS (SELECT FROM snowflake.backfills AS b WHERE b.region = r AND b.shard = wanted_shard);
  ELSIF regions = 1 THEN
    chosen := coalesce(chosen, 0);
  END IF;
  IF wanted_shard NOT BETWEEN 0 AND shards - 1 OR chosen NOT BETWEEN 0 AND regions - 1 THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('region %s, shard %s is out of range', coalesce(chosen, 0), wanted_shard),
      DETAIL = format('The layout has regions 0 to %s and shards 0 to %s.', regions - 1, shards - 1),
      HINT = 'Pass a shard, and a region, of the layout.';
  END IF;
  IF chosen IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'a region in which nobody mints is not known',
      DETAIL = CASE WHEN leased THEN 'Regions are leased here, each of them by some server, sooner or later.'
                    ELSE format('Shard %s has been backfilled in all regions but %s, which is this server''s.', wanted_shard, own) END,
      HINT = CASE WHEN leased THEN 'Take a region out of the pool (doc/fleet.md, static servers), and pass it: region => N.'
                  ELSE 'Pass another shard.' END;
  END IF;
  IF regions > 1 AND chosen = own THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('this server mints in region %s', chosen),
      DETAIL = 'An id of its region and of a time that is over may have been minted.',
      HINT = 'Leave the region out, or pass one in which no server mints.';
  END IF;
  IF regions = 1 AND snowflake.owns_shard(wanted_shard) THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('this server may mint for shard %s', wanted_shard),
      DETAIL = 'The layout has no regions: old rows need a shard of their own, for which nobody has minted.',
      HINT = 'Choose such a shard, take it out of "snowflake.owned_shards" on every server, and restart them.';
  END IF;
  IF taken.region IS NULL THEN
    INSERT INTO snowflake.backfills (region, shard, relation, id_column, table_oid)
      SELECT chosen, wanted_shard, reserve_place.relation::text, id.attname, id.attrelid
       WHERE NOT EXISTS (SELECT FROM snowflake.backfills AS b WHERE b.region = chosen AND b.shard = wanted_shard);
    IF NOT FOUND THEN
      SELECT * INTO taken FROM snowflake.backfills AS b WHERE b.region = chosen AND b.shard = wanted_shard;
      RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
        MESSAGE = format('region %s, shard %s has been backfilled before', chosen, wanted_shard),
        DETAIL = format('%s.%I has ids of it, since %s.', taken.relation, taken.id_column, taken.began),
        HINT = CASE WHEN regions > 1 THEN 'Leave the region out, or pass another.' ELSE 'Pass another shard.' END;
    END IF;
  END IF;
  RETURN chosen;
END
$$;
COMMENT ON FUNCTION snowflake.reserve_place(regclass, pg_attribute, integer, integer) IS
  'Internal: for backfill(): the region for a column''s old rows, the one it has already or one that is reserved from now on';

-- What a batch is asked for, in the column's own type: an index on it serves.
CREATE FUNCTION snowflake.check_backfill(relation regclass, id_column name, created_at name, shard integer, region integer,
                                         utc boolean, batch integer)
  RETURNS integer
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
      DETAIL = 'A batch has 1 to 100,000 rows, which are locked together.', HINT = 'Leave it out: 1,000.';
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
      DETAIL = format('It is %s. Which rows get their id cannot be seen through it.',
                      (SELECT string_agg(quote_ident(rulename), ', ' ORDER BY rulename) FROM pg_rewrite WHERE ev_class = relation AND ev_type = '2')),
      HINT = 'Drop the rule, or make a trigger of it.';
  END IF;
  IF NOT EXISTS (SELECT FROM snowflake.minting_columns() AS m WHERE m.relation = check_backfill.relation AND m.attribute = id_column) THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('%s.%I has no default that mints', relation, id_column),
      DETAIL = 'Rows that are written from now on would have no id.',
      HINT = format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT snowflake.next_id(...);', relation, id_column);
  END IF;
  type := format_type(made.atttypid, NULL);
  IF NOT (type = 'timestamp with time zone' AND NOT utc OR type = 'timestamp without time zone' AND utc) THEN
    RAISE EXCEPTION USING ERRCODE = 'datatype_mismatch',
      MESSAGE = format('%s.%I is not known to be a time', relation, created_at),
      DETAIL = format('It is of type %s%s.', type, CASE WHEN utc THEN ', and said to be in UTC' ELSE '' END),
      HINT = 'Pass a column of type timestamp with time zone; or one without, in UTC, and utc => true.';
  END IF;
  IF NOT EXISTS (SELECT FROM pg_index AS i JOIN pg_class AS c ON c.oid = indexrelid JOIN pg_am AS m ON m.oid = relam
                  WHERE indrelid = relation AND indkey[0] = made.attnum AND indisvalid AND amname = 'btree'
                    AND (indpred IS NULL OR pg_get_expr(indpred, indrelid) = format('(%I IS NULL)', id_column))) THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('%s.%I has no index', relation, created_at),
      DETAIL = 'Every batch would read the whole table.',
      HINT = format('CREATE INDEX CONCURRENTLY ON %s (%I) WHERE %I IS NULL;', relation, created_at, id_column);
  END IF;
  -- Who has not the rights of the owner reserves nothing.
  PERFORM snowflake.run_as((SELECT relowner FROM pg_class WHERE oid = relation), format('SELECT FROM %s LIMIT 0', relation));
  RETURN snowflake.reserve_place(relation, id, shard, region);
END
$$;
COMMENT ON FUNCTION snowflake.check_backfill(regclass, name, name, integer, integer, boolean, integer) IS
  'Internal: for backfill(): raises the error that fits its arguments; returns the region of the ids';

-- Waits for no row, so it is part of no deadlock: where somebody has one, the batch ends before it.
CREATE FUNCTION snowflake.backfill_batch(relation regclass, id_column name, created_at name, place_shard integer, place_region integer,
                                         utc boolean, batch integer)
  RETURNS integer
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET datestyle = 'ISO'
AS $$
DECLARE
  layout CONSTANT snowflake.layout := l FROM snowflake.layout AS l;
  place snowflake.backfills;
  zone CONSTANT text := CASE WHEN utc THEN ' AT TIME ZONE ''UTC''' ELSE '' END;
  owner CONSTANT oid := (SELECT relowner FROM pg_class WHERE oid = relation);
  since timestamptz;
  upto timestamptz;
  held timestamptz;
  tids tid[];
  times timestamptz[];
  ids bigint[];
  done integer;
BEGIN
  PERFORM snowflake.refuse_snapshot('backfill()');
  SELECT * INTO place FROM snowflake.backfills AS b WHERE b.region = place_region AND b.shard = place_shard FOR UPDATE;
  since := greatest(layout.epoch, place.done_until);
  SELECT a.upto INTO upto FROM snowflake.ask_as(owner, format(
      'SELECT max(at)%4$s FROM (SELECT %1$I AS at FROM %2$s WHERE %3$I IS NULL AND %1$I BETWEEN (%5$L::timestamptz%4$s) AND (%6$L::timestamptz%4$s) '
      'ORDER BY 1 LIMIT %7$s) AS s', created_at, relation, id_column, zone, since, clock_timestamp(), batch)) AS a (upto timestamptz);
  IF upto IS NULL THEN
    UPDATE snowflake.backfills SET finished = clock_timestamp() WHERE region = place_region AND shard = place_shard;
    RETURN 0;
  END IF;
  SELECT a.tids, a.times INTO tids, times FROM snowflake.ask_as(owner, format(
      'SELECT array_agg(place ORDER BY at, place), array_agg(at%4$s ORDER BY at, place) '
      'FROM (SELECT ctid AS place, %1$I AS at FROM %2$s WHERE %3$I IS NULL AND %1$I BETWEEN (%5$L::timestamptz%4$s) AND (%6$L::timestamptz%4$s) '
      'ORDER BY %1$I LIMIT %7$s %8$s SKIP LOCKED) AS s', created_at, relation, id_column, zone, since, upto, batch,
      -- A column with a unique index is part of what foreign keys lock.
      CASE WHEN EXISTS (SELECT FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey)
                         WHERE indrelid = relation AND indisunique AND attname = id_column)
           THEN 'FOR UPDATE' ELSE 'FOR NO KEY UPDATE' END)) AS a (tids tid[], times timestamptz[]);
  SELECT a.held INTO held FROM snowflake.ask_as(owner, format(
      'SELECT min(%1$I)%4$s FROM %2$s WHERE %3$I IS NULL AND %1$I >= (%5$L::timestamptz%4$s) AND %1$I < (%6$L::timestamptz%4$s) AND ctid <> ALL (%7$L::tid[])',
      created_at, relation, id_column, zone, since, upto, coalesce(tids, '{}'))) AS a (held timestamptz);
  held := least(held, upto);

  SELECT array_agg(tid ORDER BY number), array_agg(snowflake.make_id(
           layout.epoch + (position >> layout.sequence_bits) * layout.tick_ms * interval '1 ms', place_shard,
           (position & ((1::bigint << layout.sequence_bits) - 1))::integer, place_region) ORDER BY number),
         coalesce(max(position), place.last_position)
    INTO tids, ids, place.last_position
    FROM (SELECT tid, number, number + greatest(place.last_position, max(earliest - number) OVER (ORDER BY number)) AS position
            FROM (SELECT t.tid, t.number,
                         floor(extract(epoch FROM t.at - layout.epoch) * 1000 / layout.tick_ms)::bigint << layout.sequence_bits AS earliest
                    FROM unnest(tids, times) WITH ORDINALITY AS t (tid, at, number)
                   WHERE t.at <= held) AS e) AS p;
  -- Counted are the rows that have their id in the end: a trigger may take it away again, and such rows would be asked for
  -- without end.
  SELECT a.done INTO done FROM snowflake.ask_as(owner, format(
      'WITH given AS (UPDATE %1$s AS t SET %2$I = v.id FROM ROWS FROM (unnest(%3$L::tid[]), unnest(%4$L::bigint[])) AS v (place, id) '
      'WHERE t.ctid = v.place RETURNING t.%2$I IS NOT DISTINCT FROM v.id AS has_it) SELECT count(*) FILTER (WHERE has_it) FROM given',
      relation, id_column, coalesce(tids, '{}'), coalesce(ids, '{}'))) AS a (done bigint);
  IF done <> coalesce(cardinality(tids), 0) THEN
    RAISE EXCEPTION USING ERRCODE = 'triggered_action_exception',
      MESSAGE = format('%s of %s rows of %s could not be given an id', cardinality(tids) - done, cardinality(tids), relation),
      DETAIL = 'A trigger before UPDATE has left them out, or changed their ids.',
      HINT = 'Disable the trigger, and call backfill() again.';
  END IF;
  UPDATE snowflake.backfills AS b SET last_position = place.last_position, done_until = held, rows = b.rows + done, finished = NULL
   WHERE b.region = place_region AND b.shard = place_shard;
  RETURN CASE done WHEN 0 THEN -1 ELSE done END;
END
$$;
COMMENT ON FUNCTION snowflake.backfill_batch(regclass, name, name, integer, integer, boolean, integer) IS
  'Internal: for backfill(): gives one batch of rows their ids; returns how many, -1 where somebody else holds the next one, 0 at the end';

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
    FROM snowflake.ask_as((SELECT relowner FROM pg_class WHERE oid = relation), format(
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
  'Internal: for backfill(): a notice of what was done, and what is left and why';

-- Without a SET clause, with which it could not commit: everything is named with its schema.
CREATE PROCEDURE snowflake.backfill(relation regclass, id_column name, created_at name, shard integer, region integer DEFAULT NULL,
                                    utc boolean DEFAULT false, batch integer DEFAULT 1000)
  LANGUAGE plpgsql
AS $$
DECLARE
  place pg_catalog.int4;
  done pg_catalog.int4;
  total pg_catalog.int8 := 0;
  told pg_catalog.timestamptz := pg_catalog.clock_timestamp();
BEGIN
  place := snowflake.check_backfill(relation, id_column, created_at, shard, region, utc, batch);
  COMMIT;
  LOOP
    done := snowflake.backfill_batch(relation, id_column, created_at, shard, place, utc, batch);
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
  'Gives rows without an id one of the time in another column, oldest first, in a region (or, in layouts without, a shard) in which nobody mints and which is kept for this table for ever. Commits each batch, waits for no row, goes on where it stopped; rows from before the epoch, from the future or without a time are counted and left';
