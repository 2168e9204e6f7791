-- Functions that decode ids and compute bounds, in addition to the functions of readers.sql.

CREATE OR REPLACE FUNCTION snowflake.decode(id bigint, OUT created_at timestamptz, OUT region integer,
                                            OUT shard integer, OUT sequence integer)
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN (snowflake.time_of(id), snowflake.region_of(id), snowflake.shard_of(id), snowflake.sequence_of(id));
COMMENT ON FUNCTION snowflake.decode(bigint) IS
  'Returns the fields of an id: the time (start of its tick), the region, the shard, and the sequence number within '
  'the tick';

CREATE OR REPLACE FUNCTION snowflake.id_range(during tstzrange) RETURNS int8range
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  first bigint;
  last bigint;
BEGIN
  IF isempty(during) THEN
    RETURN 'empty';
  END IF;
  IF NOT lower_inf(during) THEN
    first := CASE WHEN lower_inc(during) THEN snowflake.min_id(lower(during))
                  ELSE snowflake_sql.id_after(lower(during)) END;
  END IF;
  IF NOT upper_inf(during) THEN
    last := CASE WHEN upper_inc(during) THEN snowflake_sql.id_after(upper(during))
                 ELSE snowflake.min_id(upper(during)) END;
  END IF;
  RETURN int8range(first, last);
END
$$;
COMMENT ON FUNCTION snowflake.id_range(tstzrange) IS
  'Converts a range of times to the range of the ids with these times. If the range of times is unbounded or empty, '
  'the result is also unbounded or empty';

CREATE OR REPLACE FUNCTION snowflake_sql.id_after(at timestamptz) RETURNS bigint
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF snowflake.max_id(at) = {{LAST_ID}} THEN
    PERFORM snowflake_sql.refuse_time(at, 0);
  END IF;
  RETURN snowflake.max_id(at) + 1;
END
$$;

CREATE OR REPLACE FUNCTION snowflake.make_id(at timestamptz, shard integer, sequence integer, region integer DEFAULT 0)
  RETURNS bigint
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  -- max_id() raises an error if the layout cannot contain the time.
  last_of_tick CONSTANT bigint := snowflake.max_id(at);
BEGIN
  PERFORM snowflake_sql.check_shard(shard);
  IF sequence < 0 OR sequence > {{LAST_SEQUENCE}} THEN
    PERFORM snowflake_sql.refuse_argument('22023', format('sequence number %s is out of range', sequence),
      'Layout {{BITS}} has sequence numbers 0 to {{LAST_SEQUENCE}}.',
      'Pass a sequence number from 0 to {{LAST_SEQUENCE}}.');
  ELSIF region < 0 OR region > {{LAST_REGION}} THEN
    PERFORM snowflake_sql.refuse_argument('22023', format('region %s is out of range', region),
      'Layout {{BITS}} has regions 0 to {{LAST_REGION}}.', 'Pass a region number of the layout.');
  END IF;
  RETURN (last_of_tick - {{BELOW_MASK}}) | (region::bigint << {{REGION_SHIFT}}) | (shard::bigint << {{SEQUENCE_BITS}})
    | sequence;
END
$$;
COMMENT ON FUNCTION snowflake.make_id(timestamptz, integer, integer, integer) IS
  'Calculates an id from its fields. next_id() can return the same id for another row';

-- Functions that convert ids to UUIDs and to text, and back.

CREATE OR REPLACE FUNCTION snowflake.to_uuid(id bigint) RETURNS uuid
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  ms CONSTANT bigint := {{EPOCH_MS}} + (id >> {{BELOW_BITS}}) * {{TICK_MS}};
  rest CONSTANT bigint := id & {{BELOW_MASK}};
BEGIN
  IF id < 0 OR id > {{LAST_ID}} THEN
    PERFORM snowflake_sql.refuse_id(id, 0);
  ELSIF ms >= 281474976710656 THEN
    RAISE EXCEPTION USING ERRCODE = 'numeric_value_out_of_range',
      MESSAGE = format('id %s cannot be represented as a UUID', id),
      DETAIL = format('The id has the time %s. The latest time that fits into a UUID is before %s.',
                      snowflake_sql.time_at(ms), snowflake_sql.time_at(281474976710656)),
      HINT = 'Use a text form such as to_base62() for this id.';
  END IF;
  RETURN (lpad(to_hex((ms << 16) | (7::bigint << 12) | (rest >> 32)), 16, '0')
       || lpad(to_hex((1::bigint << 63) | ((rest & 4294967295) << 30) | snowflake_sql.uuid_check(id)), 16, '0'))::uuid;
END
$$;
COMMENT ON FUNCTION snowflake.to_uuid(bigint) IS
  'Converts an id to a UUID of version 7 with the time of the id. The UUIDs sort like the ids. The time of the id '
  'must be before 10889-08-02';

-- Multiplies the id by a constant modulo 2^64, and returns the upper 30 bits as a hash of the id.
CREATE OR REPLACE FUNCTION snowflake_sql.uuid_check(id bigint) RETURNS bigint
  LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
  SELECT div(id::numeric * 11400714819323198485 % 18446744073709551616, 17179869184)::bigint
$$;

-- Returns the id that a UUID contains. Error messages show `encoded`, the text of the caller, and `form`, the format of
-- the text.
CREATE OR REPLACE FUNCTION snowflake_sql.id_of_uuid(uuid uuid, form text, encoded text, maker text) RETURNS bigint
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  hex CONSTANT text := replace(uuid::text, '-', '');
  high CONSTANT bigint := ('x' || left(hex, 16))::bit(64)::bigint;
  low CONSTANT bigint := ('x' || right(hex, 16))::bit(64)::bigint;
  since CONSTANT bigint := (high >> 16 & 281474976710655) - {{EPOCH_MS}};
  rest CONSTANT bigint := ((high & 4095) << 32) | ((low >> 30) & 4294967295);
  id CONSTANT bigint := (since / {{TICK_MS}} << {{BELOW_BITS}}) | rest;
  wrong CONSTANT text := CASE
    WHEN high >> 12 & 15 <> 7 OR low >> 62 & 3 <> 2 THEN 'The version is not 7, or the variant is not that of RFC '
                                                         '9562.'
    WHEN since < 0 OR since % {{TICK_MS}} <> 0 OR since / {{TICK_MS}} >= {{TICKS}}
      THEN 'The time is not the start of a tick of the layout.'
    WHEN rest > {{BELOW_MASK}} THEN 'Bits are set that ids of this layout do not use.'
    WHEN low & 1073741823 <> snowflake_sql.uuid_check(id)
      THEN 'The check bits (the last 30 bits) do not match the other bits.' END;
BEGIN
  IF wrong IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('%s "%s" does not represent an id of this layout', form, encoded), DETAIL = wrong,
      HINT = format('Pass a result of %s.', maker);
  END IF;
  RETURN id;
END
$$;

CREATE OR REPLACE FUNCTION snowflake.from_uuid(encoded uuid) RETURNS bigint
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN snowflake_sql.id_of_uuid(encoded, 'UUID', encoded::text, 'snowflake.to_uuid(id)');
COMMENT ON FUNCTION snowflake.from_uuid(uuid) IS
  'Converts a result of to_uuid() back to the id. Any other UUID is an error';

-- Functions that find a row by its id in partitions or schemas of shards.

CREATE OR REPLACE FUNCTION snowflake.has_id(id bigint, key bigint) RETURNS boolean
  LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE
  BEGIN ATOMIC
    SELECT id = key AND snowflake.shard_of(id) = snowflake.shard_of(key);
  END;
COMMENT ON FUNCTION snowflake.has_id(bigint, bigint) IS
  'Returns whether id = key. In tables that are partitioned or indexed by shard_of(id), a query reads only the shard '
  'of the key';
CREATE OR REPLACE FUNCTION snowflake.has_id(shard integer, id bigint, key bigint) RETURNS boolean
  LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE
  BEGIN ATOMIC
    SELECT id = key AND shard = snowflake.shard_of(key);
  END;
COMMENT ON FUNCTION snowflake.has_id(integer, bigint, bigint) IS
  'Returns whether id = key. In tables that are partitioned, indexed or distributed by a shard column, a query reads '
  'only the shard of the key';
CREATE OR REPLACE FUNCTION snowflake.schema_of(id bigint, prefix text DEFAULT 'shard_') RETURNS text
  LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE
  BEGIN ATOMIC
    SELECT prefix || snowflake.shard_of(id)::text;
  END;
COMMENT ON FUNCTION snowflake.schema_of(bigint, text) IS
  'Returns the name of the schema of an id''s shard, if each shard has a schema';

-- The owner of the database may call the following administration functions.

CREATE OR REPLACE FUNCTION snowflake.observe(id bigint) RETURNS void
  LANGUAGE plpgsql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM snowflake_sql.check_call('observe()');
  IF id IS NULL THEN
    RAISE NOTICE USING MESSAGE = 'observe() did nothing because the id is null',
      DETAIL = 'The greatest id of an empty table is null.';
    RETURN;
  ELSIF id < 0 OR id > {{LAST_ID}} THEN
    PERFORM snowflake_sql.refuse_id(id, 0);
  ELSIF {{EPOCH_MS}} + (id >> {{BELOW_BITS}}) * {{TICK_MS}} > snowflake_sql.clock_ms() + {{LEAD_MS}} THEN
    PERFORM snowflake_sql.refuse_id_ahead(id, {{LEAD_MS}});
  END IF;
  PERFORM snowflake_sql.raise_to(NULL, id >> {{BELOW_BITS}}, true);
END
$$;
COMMENT ON FUNCTION snowflake.observe(bigint) IS
  'Makes every later id of this database greater than the passed id, which another server minted. A null argument has '
  'no effect';

CREATE OR REPLACE FUNCTION snowflake.set_mark(at timestamptz) RETURNS timestamptz
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  SET lock_timeout = '5s'
AS $$
DECLARE
  mark bigint;
  counter regclass;
BEGIN
  PERFORM snowflake_sql.check_call('set_mark()');
  IF NOT isfinite(at) THEN
    PERFORM snowflake_sql.refuse_time(at, 0);
  END IF;
  mark := ceil(extract(epoch FROM at) * 1000);
  IF mark < {{EPOCH_MS}} OR mark > {{END_MS}} THEN
    PERFORM snowflake_sql.refuse_time(at, 0);
  END IF;
  BEGIN
    LOCK TABLE snowflake_sql.gate IN EXCLUSIVE MODE;
    FOREACH counter IN ARRAY {{COUNTERS}} LOOP
      PERFORM setval(counter, snowflake_sql.used_before(mark));
    END LOOP;
    PERFORM snowflake_sql.write_mark(mark);
    RAISE EXCEPTION USING ERRCODE = 'SF001';
  EXCEPTION WHEN SQLSTATE 'SF001' THEN
    NULL;
  END;
  RETURN snowflake_sql.time_at(mark)::timestamptz;
END
$$;
COMMENT ON FUNCTION snowflake.set_mark(timestamptz) IS
  'Sets the high-water mark to a time after every id of this database. The call can lower the high-water mark. If an '
  'existing id has a later time than the high-water mark, ids can be minted twice. Returns the new high-water mark';

CREATE OR REPLACE FUNCTION snowflake.accept_clock() RETURNS interval
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  now_ms CONSTANT bigint := snowflake_sql.clock_ms();
  mark CONSTANT bigint := coalesce(pg_sequence_last_value('snowflake.high_water'), 0);
BEGIN
  PERFORM snowflake_sql.check_call('accept_clock()');
  IF now_ms > greatest(mark, {{EPOCH_MS}}) THEN
    PERFORM snowflake_sql.raise_to(NULL, (now_ms - {{EPOCH_MS}}) / {{TICK_MS}} - 1, true);
  END IF;
  RETURN (now_ms - mark) * interval '1 ms';
END
$$;
COMMENT ON FUNCTION snowflake.accept_clock() IS
  'Confirms that the clock is right although the clock is far ahead of the high-water mark. Returns by how much the '
  'clock is ahead of the high-water mark';

-- The following views have the same columns as the views of the extension. If this script cannot find out the value of
-- a column, for example of drift_ms, the view shows null.

CREATE OR REPLACE FUNCTION snowflake.layout(
    OUT bits text, OUT time_bits integer, OUT region_bits integer, OUT shard_bits integer,
    OUT sequence_bits integer, OUT tick_ms integer, OUT epoch timestamptz, OUT regions integer,
    OUT shards integer, OUT ids_per_second bigint, OUT ends_at timestamptz, OUT used_percent double precision)
  LANGUAGE sql VOLATILE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
  SELECT '{{BITS}}', {{TIME_BITS}}, {{REGION_BITS}}, {{SHARD_BITS}}, {{SEQUENCE_BITS}}, {{TICK_MS}},
         snowflake_sql.time_at({{EPOCH_MS}})::timestamptz, {{LAST_REGION}} + 1, {{SHARDS}},
         {{PER_TICK}}::bigint * 1000 / {{TICK_MS}}, snowflake_sql.time_at({{END_MS}})::timestamptz,
         round(greatest(0, snowflake_sql.clock_ms() - {{EPOCH_MS}})::numeric / ({{END_MS}} - {{EPOCH_MS}}) * 100,
               2)::float8
$$;
COMMENT ON FUNCTION snowflake.layout() IS 'Returns the row of the view snowflake.layout';
CREATE OR REPLACE VIEW snowflake.layout AS SELECT * FROM snowflake.layout();
COMMENT ON VIEW snowflake.layout IS
  'Shows the layout of this database''s ids: the bits, the time unit (tick), the epoch, how many ids a shard can '
  'mint, and when the layout ends';

CREATE OR REPLACE FUNCTION snowflake.health(
    OUT minting boolean, OUT reason text, OUT advice text, OUT clock timestamptz,
    OUT mark timestamptz, OUT covered_until timestamptz, OUT lead_ms double precision,
    OUT drift_ms double precision, OUT synchronized boolean, OUT maximum_error_ms double precision,
    OUT last_refusal timestamptz, OUT last_refusal_cause text, OUT layout_ends_at timestamptz, OUT cloned boolean)
  LANGUAGE plpgsql VOLATILE PARALLEL RESTRICTED SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  now_ms CONSTANT bigint := snowflake_sql.clock_ms();
  mark_ms CONSTANT bigint := pg_sequence_last_value('snowflake.high_water');
  next_ms bigint;   -- the start of the first time unit (tick) that no session has used
  cause text;
BEGIN
  clock := clock_timestamp();
  mark := snowflake_sql.time_at(least(mark_ms, {{END_MS}}))::timestamptz;
  layout_ends_at := snowflake_sql.time_at({{END_MS}})::timestamptz;
  IF pg_is_in_recovery() THEN
    cause := 'standby';
  ELSE
    -- After PostgreSQL has reset a counter (an unlogged sequence), pg_sequence_last_value() returns null, and the
    -- counter begins again at the high-water mark.
    SELECT {{EPOCH_MS}}
      + ((max(coalesce(pg_sequence_last_value(c), snowflake_sql.used_before(mark_ms))) >> {{TICK_SHIFT}}) + 1)
      * {{TICK_MS}}
      INTO next_ms FROM unnest({{COUNTERS}}) AS c;
    covered_until := CASE WHEN mark_ms > now_ms THEN mark END;
    lead_ms := greatest(0, next_ms - {{TICK_MS}} - now_ms);
    cause := CASE
      WHEN current_setting('default_transaction_read_only') = 'on' THEN 'read_only_by_default'
      WHEN now_ms < {{EPOCH_MS}} THEN 'clock_before_epoch'
      WHEN now_ms >= {{END_MS}} OR next_ms >= {{END_MS}} THEN 'layout_exhausted'
      WHEN mark_ms IS NULL OR mark_ms < {{EPOCH_MS}} THEN 'mark_lost'
      WHEN now_ms - mark_ms > {{JUMP_MS}} THEN 'clock_jumped'
      WHEN next_ms - now_ms > {{LEAD_MS}} + 2000
        THEN CASE WHEN next_ms >= mark_ms THEN 'mark_ahead' ELSE 'clock_behind' END END;
  END IF;
  minting := cause IS NULL;
  SELECT r.reason, r.advice INTO reason, advice FROM snowflake_sql.refusal(cause) AS r;
END
$$;
COMMENT ON FUNCTION snowflake.health() IS 'Returns the row of the view snowflake.health';
CREATE OR REPLACE VIEW snowflake.health AS SELECT * FROM snowflake.health();
COMMENT ON VIEW snowflake.health IS
  'Shows whether this database mints ids. If the database does not mint ids, shows the reason and the advice. The '
  'view always has one row';

-- Revokes the privileges that ALTER DEFAULT PRIVILEGES, or an earlier run of the script, has granted.
DO $privileges$
DECLARE
  given record;
BEGIN
  FOR given IN
    SELECT DISTINCT o.kind, o.name,
           CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS role
      FROM (SELECT CASE relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS kind, oid::regclass::text AS name,
                   relnamespace AS schema, relowner AS owner, relacl AS acl FROM pg_class
                   WHERE relkind IN ('S', 'r', 'v')
            UNION ALL SELECT 'ROUTINE', oid::regprocedure::text, pronamespace, proowner,
                             coalesce(proacl, acldefault('f', proowner)) FROM pg_proc
            UNION ALL SELECT 'SCHEMA', quote_ident(nspname), oid, nspowner, nspacl FROM pg_namespace) AS o
     CROSS JOIN aclexplode(o.acl) AS a
     WHERE o.schema IN ('snowflake'::regnamespace, 'snowflake_sql'::regnamespace) AND a.grantee <> o.owner
  LOOP
    EXECUTE format('REVOKE ALL ON %s %s FROM %s', given.kind, given.name, given.role);
  END LOOP;
END
$privileges$;
GRANT USAGE ON SCHEMA snowflake, snowflake_sql TO PUBLIC;
GRANT SELECT ON SEQUENCE snowflake.high_water TO PUBLIC;
GRANT SELECT ON snowflake.layout, snowflake.health, snowflake.dumped_seal TO PUBLIC;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA snowflake, snowflake_sql TO PUBLIC;
REVOKE ALL ON FUNCTION snowflake_sql.write_mark(bigint), snowflake_sql.adopt(),
  snowflake_sql.wait(integer, bigint, bigint, boolean, bigint),
  snowflake_sql.take_ticks(regclass, bigint, bigint, bigint, bigint),
  snowflake_sql.open_tick(integer, bigint, text, bigint), snowflake_sql.raise_to(integer, bigint, boolean),
  snowflake_sql.advance_past(integer, bigint, bigint, text),
  snowflake.observe(bigint), snowflake.set_mark(timestamptz), snowflake.accept_clock() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake.observe(bigint), snowflake.set_mark(timestamptz),
  snowflake.accept_clock() TO pg_database_owner;
