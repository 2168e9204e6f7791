-- Creates partitions by time and by shard. An existing partition stays if it has the same bounds, and is an error if it
-- has other bounds.

CREATE FUNCTION snowflake.refuse_partition_key(parent regclass, strategy "char") RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT EXISTS (
    SELECT FROM pg_partitioned_table JOIN pg_attribute ON attrelid = partrelid AND attnum = partattrs[0]
      JOIN pg_opclass AS c ON c.oid = partclass[0]
     WHERE partrelid = parent AND partstrat = strategy AND partnatts = 1 AND atttypid = 'bigint'::regtype
       AND (opcname, opcnamespace) =
           (CASE strategy WHEN 'r' THEN name 'int8_ops' ELSE 'by_shard' END,
            to_regnamespace(CASE strategy WHEN 'r' THEN 'pg_catalog' ELSE 'snowflake' END))) THEN
    RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
      MESSAGE = format('table %s is not partitioned by %s', parent,
                       CASE strategy WHEN 'r' THEN 'range of an id' ELSE 'shard' END),
      DETAIL = coalesce('The table is partitioned by ' || nullif(pg_get_partkeydef(parent), '') || '.',
                        'The table is not partitioned.'),
      HINT = CASE strategy WHEN 'r' THEN 'Create the table with PARTITION BY RANGE (id).'
                           ELSE 'Create the table with PARTITION BY HASH (id snowflake.by_shard).' END;
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.refuse_partition_key(regclass, "char") IS
  'Internal: for the procedures that create partitions: raises an error unless a table is partitioned by one bigint '
  'column, either by range or by hash with snowflake.by_shard';

-- If two jobs create the same partitions, the second job waits for the first job. The lock on the parent table has the
-- same mode as the lock of ATTACH PARTITION, so readers and writers continue.
CREATE FUNCTION snowflake.lock_partitioning(parent regclass) RETURNS void
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  EXECUTE format('LOCK TABLE ONLY %s IN SHARE UPDATE EXCLUSIVE MODE', parent);
END
$$;
COMMENT ON FUNCTION snowflake.lock_partitioning(regclass) IS
  'Internal: for create_partitions() and create_time_partitions(): prevents other sessions from creating partitions '
  'of the same table until the transaction ends';

CREATE FUNCTION snowflake.refuse_partition(parent regclass, place text, bounds text) RETURNS void
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  home CONSTANT pg_class := c FROM pg_class AS c WHERE oid = parent;
BEGIN
  -- ATTACH PARTITION checks a foreign key by a query on both tables, even if the partition has no rows.
  IF EXISTS (SELECT FROM pg_constraint JOIN pg_class AS c ON c.oid = confrelid
              WHERE conrelid = parent AND contype = 'f' AND NOT pg_has_role(c.relowner, home.relowner, 'USAGE')) THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('a foreign key of table %s refers to a table of another owner', parent),
      DETAIL = 'To attach a partition, PostgreSQL runs code of the referenced table''s owner. '
               'This code would have the rights of the partitioned table''s owner.',
      HINT = 'Give both tables to one role, or drop the foreign key.';
  END IF;
  IF to_regclass(place) IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'duplicate_table',
      MESSAGE = format('relation %s already exists', place),
      DETAIL = format('The relation is not the partition %s of table %s.', bounds, parent),
      HINT = 'Rename this relation, or attach it to the table as the partition that the detail names.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.refuse_partition(regclass, text, text) IS
  'Internal: for create_partitions() and create_time_partitions(): raises an error if the name of the partition is in '
  'use, or if a foreign key refers to a table of another owner';

-- Uses ATTACH PARTITION, because CREATE TABLE with PARTITION OF would wait for all readers of the parent.
CREATE FUNCTION snowflake.add_partition(parent regclass, partition name, bounds text) RETURNS boolean
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  home CONSTANT pg_class := c FROM pg_class AS c WHERE oid = parent;
  place CONSTANT text := format('%I.%I', home.relnamespace::regnamespace::name, partition);
BEGIN
  IF EXISTS (SELECT FROM pg_inherits JOIN pg_class AS c ON c.oid = inhrelid
              WHERE inhparent = parent AND pg_get_expr(relpartbound, c.oid) = bounds) THEN
    RETURN false;
  END IF;
  PERFORM snowflake.refuse_partition(parent, place, bounds);
  PERFORM snowflake.run_as(home.relowner,
                           format('CREATE %sTABLE %s (LIKE %s INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING '
                                  'GENERATED INCLUDING STORAGE INCLUDING COMPRESSION)%s',
                 CASE home.relpersistence WHEN 'u' THEN 'UNLOGGED ' WHEN 't' THEN 'TEMPORARY ' ELSE '' END, place,
                 parent,
                 coalesce((SELECT format(' TABLESPACE %I', spcname) FROM pg_tablespace WHERE oid = home.reltablespace),
                          '')));
  PERFORM snowflake.run_as(home.relowner, format('ALTER TABLE %s ATTACH PARTITION %s %s', parent, place, bounds));
  -- A partition does not inherit the replica identity of its parent table, so add_partition() copies the replica
  -- identity. If a published table gets a partition without a replica identity, UPDATE and DELETE fail in this
  -- partition.
  IF home.relreplident <> 'd' THEN
    PERFORM snowflake.run_as(home.relowner,
                             format('ALTER TABLE %s REPLICA IDENTITY %s', place,
                                    CASE home.relreplident WHEN 'f' THEN 'FULL' WHEN 'n' THEN 'NOTHING' ELSE (
      SELECT format('USING INDEX %I', c.relname)
        FROM pg_index AS p JOIN pg_inherits ON inhparent = p.indexrelid JOIN pg_index AS i ON i.indexrelid = inhrelid
        JOIN pg_class AS c ON c.oid = inhrelid
       WHERE p.indrelid = parent AND p.indisreplident AND i.indrelid = to_regclass(place)) END));
  END IF;
  RETURN true;
EXCEPTION WHEN invalid_object_definition THEN
  RAISE EXCEPTION USING ERRCODE = 'invalid_object_definition',
    MESSAGE = SQLERRM,
    DETAIL = format('The new partition of table %2$s would be created %1$s.', bounds, parent),
    HINT = 'Pass the step of the existing partitions, or a time "since" that is after them.';
END
$$;
COMMENT ON FUNCTION snowflake.add_partition(regclass, name, text) IS
  'Internal: for create_partitions() and create_time_partitions(): creates a partition unless a partition with the '
  'same bounds exists. Returns whether a partition was created';

CREATE FUNCTION snowflake.partition_name(parent regclass, suffix text) RETURNS name
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  whole CONSTANT text := (SELECT relname FROM pg_class WHERE oid = parent) || '_' || suffix;
BEGIN
  IF octet_length(whole) > 63 THEN
    RAISE EXCEPTION USING ERRCODE = 'name_too_long',
      MESSAGE = format('the name of partition "%s" is too long', whole),
      DETAIL = 'A name has 63 bytes at most.', HINT = 'Give the table a shorter name.';
  END IF;
  RETURN whole;
END
$$;
COMMENT ON FUNCTION snowflake.partition_name(regclass, text) IS
  'Internal: for create_partitions() and create_time_partitions(): returns the name of a partition';

CREATE FUNCTION snowflake.check_step(step interval, ahead integer, months integer, seconds numeric) RETURNS void
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF ahead NOT BETWEEN 0 AND 1000 OR (months > 0) = (seconds > 0) OR months < 0 OR seconds < 0
     OR months > 0 AND 12 % months <> 0 AND months % 12 <> 0
     OR seconds > 0 AND seconds <> ALL (ARRAY[604800, 86400])
    AND (seconds < 60 OR 86400 % seconds <> 0 OR seconds % 60 <> 0) THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('step "%s" or number of steps %s is invalid', step, ahead),
      DETAIL = 'The step must be 1, 2, 3, 4 or 6 months, whole years, 7 days, 1 day, '
               'or a number of minutes that divides a day evenly. '
               '"ahead" must be 0 to 1000.',
      HINT = 'Pass a step such as ''1 month'', ''7 days'' or ''6 hours'', and up to 1000 steps.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.check_step(interval, integer, integer, numeric) IS
  'Internal: for create_time_partitions(): raises an error (22023) if partitions cannot have this step';

-- Each partition begins at a round time in UTC, because ids contain times in UTC. Weeks are counted from 2001-01-01,
-- which was a Monday, so each week begins on a Monday.
CREATE FUNCTION snowflake.first_start(step interval, since timestamptz, months integer) RETURNS timestamp
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  origin CONSTANT timestamp := '2001-01-01';
  -- Creates no partition before the epoch, because no id is older than the epoch.
  first CONSTANT timestamp := greatest(coalesce(since, clock_timestamp()), l.epoch) AT TIME ZONE 'UTC'
    FROM snowflake.layout AS l;
BEGIN
  IF NOT isfinite(since) OR since > clock_timestamp() THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('partitions cannot begin at %s', since),
      DETAIL = format('The argument "since" must be finite and not in the future. The clock shows %s.',
                      clock_timestamp()),
      HINT = 'Pass the time of the oldest row as "since", or omit "since".';
  END IF;
  -- A step of 2, 3, 4 or 6 months divides each year in the same way, from January 1 on.
  IF months > 0 THEN
    RETURN date_trunc('month', first) - make_interval(months =>
      ((extract(year FROM first) * 12 + extract(month FROM first) - 1)::integer % months));
  END IF;
  RETURN date_bin(step, first, origin);
END
$$;
COMMENT ON FUNCTION snowflake.first_start(interval, timestamptz, integer) IS
  'Internal: for create_time_partitions(): returns the start of the first partition, which contains the time "since" '
  'or, by default, the current time';

CREATE PROCEDURE snowflake.create_time_partitions(parent regclass, step interval, ahead integer DEFAULT 3,
                                                  since timestamptz DEFAULT NULL)
  LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  months CONSTANT integer := extract(year FROM step) * 12 + extract(month FROM step);
  seconds CONSTANT numeric := extract(epoch FROM step - make_interval(months => months));
  epoch CONSTANT timestamptz := l.epoch FROM snowflake.layout AS l;
  today CONSTANT timestamp := clock_timestamp() AT TIME ZONE 'UTC';
  start timestamp;
  stop timestamp;
  remaining integer := ahead;
  form text;
BEGIN
  PERFORM snowflake.refuse_null('create_time_partitions()', parent::text, step::text, ahead::text);
  PERFORM snowflake.refuse_partition_key(parent, 'r');
  PERFORM snowflake.lock_partitioning(parent);
  PERFORM snowflake.check_step(step, ahead, months, seconds);
  start := snowflake.first_start(step, since, months);
  form := CASE WHEN months > 0 AND months % 12 = 0 THEN 'YYYY' WHEN months > 0 THEN 'YYYY_MM'
               WHEN seconds >= 86400 THEN 'YYYY_MM_DD' ELSE 'YYYY_MM_DD_HH24MI' END;
  LOOP
    stop := start + step;
    PERFORM snowflake.add_partition(parent, snowflake.partition_name(parent, to_char(start, form)),
      format('FOR VALUES FROM (%L) TO (%L)', snowflake.min_id(greatest(start AT TIME ZONE 'UTC', epoch)),
             snowflake.min_id(stop AT TIME ZONE 'UTC')));
    IF start > today THEN
      remaining := remaining - 1;
    END IF;
    EXIT WHEN remaining <= 0 AND stop > today;
    start := stop;
  END LOOP;
END
$$;
COMMENT ON PROCEDURE snowflake.create_time_partitions(regclass, interval, integer, timestamptz) IS
  'Creates partitions by time for a table that is partitioned by range of its id, from "since" (by default now) up '
  'to "ahead" steps after now. Each partition begins at a round time in UTC. The name of a partition contains its '
  'start. Existing partitions are not changed';

-- Returns only partitions that are plain tables with two numbers as bounds. A DEFAULT partition, or a partition that
-- begins at MINVALUE, may contain rows of any time.
CREATE FUNCTION snowflake.partitions_before(parent regclass, first_kept bigint) RETURNS SETOF regclass
  LANGUAGE sql STABLE STRICT PARALLEL UNSAFE ROWS 50 SET search_path = pg_catalog, pg_temp AS $$
  SELECT c.oid::regclass
    FROM pg_inherits JOIN pg_class AS c ON c.oid = inhrelid,
         regexp_match(pg_get_expr(relpartbound, c.oid), '^FOR VALUES FROM \(''(\d+)''\) TO \(''(\d+)''\)$') AS bounds
   WHERE inhparent = parent AND NOT inhdetachpending AND relkind = 'r' AND bounds[2]::bigint <= first_kept
   ORDER BY bounds[1]::bigint
$$;
COMMENT ON FUNCTION snowflake.partitions_before(regclass, bigint) IS
  'Internal: for drop_time_partitions(): returns the partitions whose ids are all below an id';

-- All locks of one call of drop_time_partitions() have the same deadline. A free lock is taken even after the deadline.
CREATE FUNCTION snowflake.limit_waits(until timestamptz) RETURNS boolean
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  remaining CONSTANT integer := extract(epoch FROM until - clock_timestamp()) * 1000;
BEGIN
  PERFORM set_config('lock_timeout', greatest(remaining, 1)::text, true);
  RETURN remaining > 0;
END
$$;
COMMENT ON FUNCTION snowflake.limit_waits(timestamptz) IS
  'Internal: for drop_time_partitions(): sets lock_timeout to the time until a deadline, and returns whether the '
  'deadline is in the future';

-- Raises an error if a partition contains plain numbers, such as values of a former sequence, instead of ids.
-- Interpreted as an id, a plain number has a time in the first hour after the epoch. The function reads only partitions
-- that begin in the first hour after the epoch. Row security must not hide rows from this check.
CREATE FUNCTION snowflake.refuse_plain_numbers(parent regclass, partition regclass) RETURNS void
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off AS $$
DECLARE
  owner CONSTANT oid := relowner FROM pg_class WHERE oid = parent;
  key CONSTANT name := attname FROM pg_partitioned_table JOIN pg_attribute ON attrelid = partrelid
                        AND attnum = partattrs[0] WHERE partrelid = parent;
  first CONSTANT bigint := (regexp_match(pg_get_expr(relpartbound, oid), '\d+'))[1] FROM pg_class WHERE oid = partition;
  last_plain CONSTANT bigint := snowflake.last_id_before(l.epoch + interval '1 hour') FROM snowflake.layout AS l;
  plain bigint;
BEGIN
  IF first <= last_plain THEN
    SELECT number INTO plain
      FROM snowflake.query_as(owner, format('SELECT min(%1$I) FROM %2$s WHERE %1$I <= %3$s', key, partition,
                                            last_plain)) AS found (number bigint);
  END IF;
  IF plain IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('partition %s contains numbers that are probably not ids', partition),
      DETAIL = format('As an id, the value %s of column %I would have a time within one hour after the epoch of ids. '
                      'No partition was dropped.', plain, key),
      HINT = 'If the rows of the partition are not needed, drop the partition with DROP TABLE.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.refuse_plain_numbers(regclass, regclass) IS
  'Internal: for drop_time_partitions(): raises an error (55000) if a partition contains a number that is probably '
  'the value of a sequence. As an id, the number would have a time within one hour after the epoch of ids';

CREATE FUNCTION snowflake.drop_partition(parent regclass, partition regclass, first_kept bigint, until timestamptz)
  RETURNS void
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  owner CONSTANT oid := relowner FROM pg_class WHERE oid = parent;
  name CONSTANT text := partition::text;
  dependent text;
BEGIN
  PERFORM snowflake.run_as(owner, format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE%s', name,
                                         CASE WHEN snowflake.limit_waits(until) THEN '' ELSE ' NOWAIT' END));
  -- Before the session had the lock, the owner may have renamed the partition, or attached the partition with other
  -- bounds.
  IF to_regclass(name) IS DISTINCT FROM partition
     OR partition NOT IN (SELECT snowflake.partitions_before(parent, first_kept)) THEN
    RAISE EXCEPTION USING ERRCODE = 'object_in_use',
      MESSAGE = format('partition %s was changed by another session', name),
      DETAIL = 'No partition was dropped.', HINT = 'Call drop_time_partitions() again.';
  END IF;
  PERFORM snowflake.refuse_plain_numbers(parent, partition);
  PERFORM snowflake.limit_waits(until);
  PERFORM snowflake.run_as(owner, format('DROP TABLE %s', name));
EXCEPTION WHEN dependent_objects_still_exist THEN
  GET STACKED DIAGNOSTICS dependent = PG_EXCEPTION_DETAIL;
  RAISE EXCEPTION USING ERRCODE = 'dependent_objects_still_exist',
    MESSAGE = format('other objects depend on partition %s', name),
    DETAIL = concat_ws(' ', replace(dependent, E'\n', '; ') || '.', 'No partition was dropped.'),
    HINT = 'Drop these objects, or detach the partition, and call drop_time_partitions() again.';
END
$$;
COMMENT ON FUNCTION snowflake.drop_partition(regclass, regclass, bigint, timestamptz) IS
  'Internal: for drop_time_partitions(): drops a partition without CASCADE';

CREATE FUNCTION snowflake.first_kept_id(before timestamptz) RETURNS bigint
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT isfinite(before) OR before > clock_timestamp() THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('partitions before %s cannot be dropped', before),
      DETAIL = format('The time must be finite and not in the future. The clock shows %s.', clock_timestamp()),
      HINT = 'Pass a time in the past, such as now() - interval ''1 year''.';
  END IF;
  RETURN snowflake.last_id_before(before) + 1;
END
$$;
COMMENT ON FUNCTION snowflake.first_kept_id(timestamptz) IS
  'Internal: for drop_time_partitions(): returns the first id that is kept. Raises an error (22023) if the time is in '
  'the future';

-- DROP TABLE of a partition locks the parent table, so other sessions wait behind DROP TABLE. A call of
-- drop_time_partitions() waits for all its locks together at most 3 s, or lock_timeout if lock_timeout is set.
CREATE PROCEDURE snowflake.drop_time_partitions(parent regclass, before timestamptz, dry_run boolean DEFAULT true)
  LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  setting CONSTANT text := current_setting('lock_timeout');
  lock_limit CONSTANT text := CASE setting WHEN '0' THEN '3s' ELSE setting END;
  until CONSTANT timestamptz := clock_timestamp() + lock_limit::interval;
  first_kept bigint;
  partition regclass;
  partitions integer := 0;
BEGIN
  PERFORM snowflake.refuse_null('drop_time_partitions()', parent::text, before::text, dry_run::text);
  PERFORM snowflake.refuse_partition_key(parent, 'r');
  first_kept := snowflake.first_kept_id(before);
  PERFORM snowflake.limit_waits(until);
  IF NOT dry_run THEN
    PERFORM snowflake.run_as((SELECT relowner FROM pg_class WHERE oid = parent),
                             format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE', parent));
  END IF;
  FOR partition IN SELECT snowflake.partitions_before(parent, first_kept) LOOP
    RAISE INFO 'DROP TABLE %;', partition;
    IF dry_run THEN
      PERFORM snowflake.refuse_plain_numbers(parent, partition);
    ELSE
      PERFORM snowflake.drop_partition(parent, partition, first_kept, until);
    END IF;
    partitions := partitions + 1;
  END LOOP;
  PERFORM set_config('lock_timeout', setting, true);
  IF dry_run AND partitions > 0 THEN
    RAISE NOTICE USING
      MESSAGE = format('no partition was dropped; number of partitions that would be dropped: %s', partitions),
      HINT = 'To drop these partitions, pass dry_run => false.';
  END IF;
EXCEPTION WHEN lock_not_available THEN
  RAISE EXCEPTION USING ERRCODE = 'lock_not_available',
    MESSAGE = format('table %s or a partition is in use', parent),
    DETAIL = format('The locks were not available within %s. No partition was dropped.', lock_limit),
    HINT = 'Call drop_time_partitions() again, or set "lock_timeout" to a longer time.';
END
$$;
COMMENT ON PROCEDURE snowflake.drop_time_partitions(regclass, timestamptz, boolean) IS
  'Drops the partitions whose ids are all older than a time, without CASCADE. By default, only shows the statements. '
  'To run the statements, pass dry_run => false. Raises an error (55000) if a partition contains values of a sequence '
  'in place of ids';

CREATE PROCEDURE snowflake.create_partitions(parent regclass, modulus integer)
  LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  shards CONSTANT integer := l.shards FROM snowflake.layout AS l;
  unlike text;
BEGIN
  PERFORM snowflake.refuse_null('create_partitions()', parent::text, modulus::text);
  PERFORM snowflake.refuse_partition_key(parent, 'h');
  PERFORM snowflake.lock_partitioning(parent);
  IF modulus NOT BETWEEN 1 AND shards THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('modulus %s is out of range', modulus),
      DETAIL = format('The modulus must be at least 1, and at most the number of shards in the layout, %s.', shards),
      HINT = format('Pass a modulus from 1 to %s.', shards);
  END IF;
  SELECT string_agg(format('%s %s', c.oid::regclass, pg_get_expr(relpartbound, c.oid)), ', ') INTO unlike
    FROM pg_inherits JOIN pg_class AS c ON c.oid = inhrelid
   WHERE inhparent = parent AND pg_get_expr(relpartbound, c.oid) !~ format('^FOR VALUES WITH \(modulus %s, ', modulus);
  IF unlike IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('table %s already has partitions with a modulus other than %s', parent, modulus),
      DETAIL = format('These partitions exist: %s.', unlike),
      HINT = 'Pass the modulus of the existing partitions.';
  END IF;
  FOR remainder IN 0 .. modulus - 1 LOOP
    PERFORM snowflake.add_partition(parent, snowflake.partition_name(parent, remainder::text),
                                    format('FOR VALUES WITH (modulus %s, remainder %s)', modulus, remainder));
  END LOOP;
END
$$;
COMMENT ON PROCEDURE snowflake.create_partitions(regclass, integer) IS
  'Creates the partitions of a table that is partitioned by hash with snowflake.by_shard. The rows of shard s are in '
  'the partition with remainder s % modulus. Existing partitions are not changed';
