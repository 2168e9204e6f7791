-- The minting functions run with the rights of their owner. A minting function has no search_path setting, because the
-- setting would double the time of a call. Every name and every operator in a minting function is written with its
-- schema.

CREATE OR REPLACE FUNCTION snowflake.next_id(shard integer) RETURNS bigint
  LANGUAGE plpgsql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE SECURITY DEFINER
AS $$
DECLARE
  seen pg_catalog.int8;
  drawn pg_catalog.int8;
  waited pg_catalog.int8;
BEGIN
  LOOP
    -- Before next_id() calls nextval(), it reads the current time unit (tick) from the counter, and compares the tick
    -- with the clock. The tick must lie between the clock and the clock plus max_lead. The code checks that abs(tick -
    -- (clock + max_lead / 2)) is at most max_lead / 2.
    seen := CASE WHEN NOT pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_sequence_last_value({{FAST_COUNTER}}) END;
    drawn := CASE WHEN pg_catalog.abs((seen OPERATOR(pg_catalog.>>) {{TICK_SHIFT}}) OPERATOR(pg_catalog.-)
                         (((pg_catalog.date_part('epoch', pg_catalog.clock_timestamp())
                            OPERATOR(pg_catalog.*) 1000000)::pg_catalog.int8
                           OPERATOR(pg_catalog.-) {{EARLY_EPOCH_US}}) OPERATOR(pg_catalog./) {{TICK_US}}))
                             OPERATOR(pg_catalog.<=) {{HALF_LEAD_TICKS}}
                   AND (seen OPERATOR(pg_catalog.&) {{TICK_MASK}}) OPERATOR(pg_catalog.<) {{PER_TICK}}
                   AND (shard OPERATOR(pg_catalog.&) {{NO_SHARD}}) OPERATOR(pg_catalog.=) 0
                   AND {{FAST_TIME}}
                       OPERATOR(pg_catalog.<)
                       pg_catalog.pg_sequence_last_value('snowflake.high_water'::pg_catalog.regclass)
                  THEN pg_catalog.nextval({{FAST_COUNTER}}) OPERATOR(pg_catalog.-) 1 END;
    -- next_id() uses the number `drawn` only if `drawn` and `seen` contain the same tick, and the sequence number in
    -- `drawn` fits into an id.
    IF (drawn OPERATOR(pg_catalog.>>) {{SEQUENCE_BITS}})
       OPERATOR(pg_catalog.=) (seen OPERATOR(pg_catalog.>>) {{SEQUENCE_BITS}}) THEN
      RETURN {{FAST_POSITION}}
        OPERATOR(pg_catalog.|) (shard OPERATOR(pg_catalog.*) {{PER_TICK}}::pg_catalog.int8){{FAST_REGION}};
    END IF;
    SELECT o.waited INTO waited FROM snowflake_sql.open_tick(shard, 0, 'next_id()', waited) AS o;
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake.next_id(integer) IS
  'Mints an id for a shard. The id is greater than every earlier id of this shard';

CREATE OR REPLACE FUNCTION snowflake.next_id() RETURNS bigint
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
DECLARE
  stated CONSTANT pg_catalog.text := pg_catalog.current_setting('snowflake.default_shard', true);
BEGIN
  IF stated IS NULL OR pg_catalog.length(stated) OPERATOR(pg_catalog.=) 0 OR pg_catalog.starts_with(stated, '-') THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = '"snowflake.default_shard" is not set',
      DETAIL = 'next_id() without an argument mints for "snowflake.default_shard".',
      HINT = 'Set "snowflake.default_shard", or call next_id(shard).';
  END IF;
  RETURN snowflake.next_id(stated::pg_catalog.int4);
END
$$;
COMMENT ON FUNCTION snowflake.next_id() IS 'Mints an id for the shard in the setting snowflake.default_shard';

CREATE OR REPLACE FUNCTION snowflake.next_id(shard integer, after bigint) RETURNS bigint
  LANGUAGE plpgsql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE SECURITY DEFINER
AS $$
DECLARE
  id CONSTANT pg_catalog.int8 := snowflake.next_id(shard);
BEGIN
  IF after IS NULL OR id OPERATOR(pg_catalog.>) after AND after OPERATOR(pg_catalog.>=) 0 THEN
    RETURN id;
  END IF;
  PERFORM snowflake_sql.advance_past(shard, after, {{LEAD_MS}}, 'next_id()');
  RETURN snowflake.next_id(shard);
END
$$;
COMMENT ON FUNCTION snowflake.next_id(integer, bigint) IS
  'Mints an id that is greater than the argument "after", an id that any server may have minted. For example, a '
  'reply sorts after its post. If "after" is more than max_lead ahead of the clock, the call waits, then fails. The '
  'value null for "after" has no effect';

CREATE OR REPLACE FUNCTION snowflake.next_id_near(id bigint) RETURNS bigint
  LANGUAGE plpgsql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE
AS $$
BEGIN
  IF id IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'id is null',
      DETAIL = 'next_id_near() mints an id in the shard of the id that is passed.',
      HINT = 'Pass the id of a row in the same shard, or call next_id(shard).';
  END IF;
  RETURN snowflake.next_id(snowflake.shard_of(id));
END
$$;
COMMENT ON FUNCTION snowflake.next_id_near(bigint) IS 'Mints an id in the shard of another id';

CREATE OR REPLACE FUNCTION snowflake.next_id_in(shards int4range) RETURNS bigint
  LANGUAGE plpgsql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE
AS $$
DECLARE
  first CONSTANT pg_catalog.int8 := pg_catalog.lower(shards);
  many CONSTANT pg_catalog.int8 := pg_catalog.upper(shards) OPERATOR(pg_catalog.-) first;
BEGIN
  IF shards IS NULL THEN
    PERFORM snowflake_sql.check_shard(NULL);
  ELSIF many IS NULL OR first OPERATOR(pg_catalog.<) 0 OR pg_catalog.upper(shards) OPERATOR(pg_catalog.>) {{SHARDS}}
  THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = pg_catalog.format('shards %s are out of range', shards),
      DETAIL = 'Layout {{BITS}} has shards 0 to {{LAST_SHARD}}.', HINT = 'Pass a range of shards, such as ''[0,16)''.';
  END IF;
  -- A hash of the process id selects the shard, so that all calls of a session use one shard.
  RETURN snowflake.next_id((first OPERATOR(pg_catalog.+) (pg_catalog.pg_backend_pid() OPERATOR(pg_catalog.*) 2654435769
    OPERATOR(pg_catalog.%) 4294967296 OPERATOR(pg_catalog.*) many OPERATOR(pg_catalog.>>) 32))::pg_catalog.int4);
END
$$;
COMMENT ON FUNCTION snowflake.next_id_in(int4range) IS
  'Mints an id for one shard of a range of shards. All calls of a session use the same shard';

CREATE OR REPLACE FUNCTION snowflake.next_ids(shard integer, count integer) RETURNS bigint[]
  LANGUAGE plpgsql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  ids bigint[] := '{}';
  missing bigint := count;
  taken record;
  waited bigint := 0;
BEGIN
  IF shard IS NOT NULL AND count IS NULL THEN
    PERFORM snowflake_sql.refuse_argument('22004', 'count is null', 'A call mints 1 to 1000000 ids.',
                                          'Pass the number of ids.');
  END IF;
  PERFORM snowflake_sql.check_call('next_ids()');
  PERFORM snowflake_sql.check_shard(shard);
  IF count < 1 OR count > 1000000 THEN
    PERFORM snowflake_sql.refuse_argument('22023', format('count %s is out of range', count),
                                          'A call mints 1 to 1000000 ids.',
      CASE WHEN count < 1 THEN 'Pass a count of at least 1.' ELSE 'Mint the ids in several calls.' END);
  END IF;
  -- A call for fewer than {{PER_TICK}} ids draws the ids one by one. A call for {{PER_TICK}} or more ids reserves all
  -- sequence numbers of one or more time units (ticks).
  IF count < {{PER_TICK}} THEN
    RETURN ARRAY(SELECT snowflake.next_id(shard) FROM generate_series(1, count));
  END IF;
  WHILE missing > 0 LOOP
    SELECT * INTO taken
      FROM snowflake_sql.open_tick(shard, (missing + {{LAST_SEQUENCE}}) >> {{SEQUENCE_BITS}}, 'next_ids()', waited);
    waited := taken.waited;
    ids := ids || ARRAY(
      SELECT (taken.first + (n >> {{SEQUENCE_BITS}}) << {{BELOW_BITS}}) | {{REGION_FIELD}}
        | (shard::bigint << {{SEQUENCE_BITS}}) | (n & {{LAST_SEQUENCE}})
        FROM generate_series(0, least(missing, taken.ticks << {{SEQUENCE_BITS}}) - 1) AS n);
    missing := count - cardinality(ids);
  END LOOP;
  RETURN ids;
END
$$;
COMMENT ON FUNCTION snowflake.next_ids(integer, integer) IS
  'Mints 1 to 1,000,000 ids for a shard, in ascending order. If the shard cannot mint so many ids at once, the call '
  'waits';

CREATE OR REPLACE FUNCTION snowflake.next_ids(shard integer, count integer, after bigint) RETURNS bigint[]
  LANGUAGE plpgsql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF after IS NOT NULL AND shard IS NOT NULL AND count BETWEEN 1 AND 1000000 THEN
    PERFORM snowflake_sql.advance_past(shard, after, {{LEAD_TICKS}} / 2 * {{TICK_MS}}, 'next_ids()');
  END IF;
  RETURN snowflake.next_ids(shard, count);
END
$$;
COMMENT ON FUNCTION snowflake.next_ids(integer, integer, bigint) IS
  'Mints 1 to 1,000,000 ids for a shard, in ascending order. All these ids are greater than the argument "after", an '
  'id that any server may have minted';
