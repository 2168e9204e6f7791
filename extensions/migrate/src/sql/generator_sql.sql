-- The SQL engine mints ids on servers where the library cannot be installed.

-- The scripts of generator_sql() use sequences as counters. A value of a counter has 63 bits. The upper bits of the
-- counter store the time of an id, in ticks (time units). The lower bits number the ids of one tick. Numbers that do
-- not fit into the sequence bits of an id are the overflow of the tick.
CREATE FUNCTION snowflake.tick_shift(l snowflake.layout) RETURNS integer
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT 63 - l.time_bits + CASE l.time_bits + l.region_bits + l.shard_bits + l.sequence_bits WHEN 64 THEN 1 ELSE 0 END
$$;
COMMENT ON FUNCTION snowflake.tick_shift(snowflake.layout) IS
  'Internal: for generator_sql(): returns how many bits of a shard counter follow the bits of the time';

CREATE FUNCTION snowflake.refuse_engine(l snowflake.layout, region integer, max_lead interval, reserve interval,
    max_forward_jump interval) RETURNS void
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  per_tick CONSTANT bigint := 1::bigint << l.sequence_bits;
BEGIN
  IF region NOT BETWEEN 0 AND l.regions - 1 THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = format('region %s is out of range', region),
      DETAIL = format('Layout %s has regions 0 to %s.', l.bits, l.regions - 1),
      HINT = format('Pass a region from 0 to %s.', l.regions - 1);
  ELSIF (1::bigint << snowflake.tick_shift(l)) - per_tick < 262144 THEN
    RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
      MESSAGE = format('a script of generator_sql() cannot mint ids of layout %s', l.bits),
      DETAIL = format('A shard counter has 63 bits: the time bits, and bits that count the ids in a tick. '
                      'These bits cannot count to %s ids plus 262144.',
                      per_tick),
      HINT = 'Choose a layout with fewer time bits, or with region and shard bits.';
  ELSIF max_lead < '0' OR max_lead > '1 min' OR reserve < '100 ms' OR reserve > '1 min' OR max_forward_jump < '1 s' THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = 'max_lead, reserve or max_forward_jump is out of range',
      DETAIL = format('max_lead is %s, and must be 0 to 1 minute. reserve is %s, and must be 100 ms to 1 minute. '
                      'max_forward_jump is %s, and must be at least 1 second.', max_lead, reserve, max_forward_jump),
      HINT = 'Omit max_lead, reserve and max_forward_jump to use the defaults.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.refuse_engine(snowflake.layout, integer, interval, interval, interval) IS
  'Internal: for generator_sql(): raises an error if a script cannot support a layout, a region or a time';

-- A script of generator_sql() creates 1, 2, 4, 8, 16 or 32 counters (sequences) for new ids. The function
-- counter_words() chooses the smaller of two numbers: one counter per shard, or enough counters for a million ids per
-- second.
CREATE FUNCTION snowflake.counter_words(l snowflake.layout) RETURNS json
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT json_build_object(
    'CREATE_COUNTERS',
    (SELECT string_agg(format('  CREATE UNLOGGED SEQUENCE %s AS bigint MINVALUE 0 START 0;', counter), E'\n' ORDER BY n)
                          FROM unnest(counters) WITH ORDINALITY AS u (counter, n)),
    'COUNTERS', format('%L::regclass[]', counters),
    'COUNTER', CASE many WHEN 1 THEN format('%L::regclass', counters[1])
                 ELSE format('(%L::regclass[])[1 + (shard & %s)]', counters, many - 1) END,
    'FAST_COUNTER', CASE many WHEN 1 THEN format('%L::pg_catalog.regclass', counters[1])
      ELSE format('(%L::pg_catalog.regclass[])[1 OPERATOR(pg_catalog.+) (shard OPERATOR(pg_catalog.&) %s)]', counters,
                  many - 1) END)
    FROM (SELECT min(many) FROM unnest(ARRAY[1, 2, 4, 8, 16, 32]) AS many
           WHERE many = 32 OR many >= l.shards OR many * l.ids_per_second >= 1000000) AS s (many),
         LATERAL (SELECT array_agg('snowflake_sql.counter_' || n ORDER BY n)
                    FROM generate_series(0, many - 1) AS n) AS c (counters)
$$;
COMMENT ON FUNCTION snowflake.counter_words(snowflake.layout) IS
  'Internal: for generator_sql(): returns the SQL texts that contain the names of the shard counters. The keys of '
  'the result are placeholders in the templates';

CREATE FUNCTION snowflake.engine_words(l snowflake.layout, region integer, max_lead interval, reserve interval,
    max_forward_jump interval) RETURNS json
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT json_build_object(
    'FAST_POSITION', CASE shift WHEN l.region_bits + l.shard_bits + l.sequence_bits THEN 'drawn'
      ELSE '((drawn OPERATOR(pg_catalog.>>) {{TICK_SHIFT}}) OPERATOR(pg_catalog.<<) {{BELOW_BITS}})'
           ' OPERATOR(pg_catalog.|) (drawn OPERATOR(pg_catalog.&) {{LAST_SEQUENCE}})' END,
    'FAST_TIME', '(seen OPERATOR(pg_catalog.>>) {{TICK_SHIFT}})'
      || CASE l.tick_ms WHEN 1 THEN '' ELSE ' OPERATOR(pg_catalog.*) {{TICK_MS}}' END
        || ' OPERATOR(pg_catalog.+) {{EPOCH_MS}}',
    'FAST_REGION', CASE region WHEN 0 THEN '' ELSE ' OPERATOR(pg_catalog.|) {{REGION_FIELD}}' END,
    'EARLY_EPOCH_US', (epoch_ms - half_lead * l.tick_ms) * 1000, 'HALF_LEAD_TICKS', half_lead,
    'TICK_SHIFT', shift, 'TICK_MASK', (1::bigint << shift) - 1, 'PER_TICK', 1::bigint << l.sequence_bits,
    'REGION', region, 'REGION_FIELD', region::bigint << l.shard_bits + l.sequence_bits,
    'LEAD_MS', 2 * half_lead * l.tick_ms, 'LEAD_TICKS', 2 * half_lead,
    'RESERVE_MS', (extract(epoch FROM reserve) * 1000)::bigint, 'JUMP_MS',
    (extract(epoch FROM max_forward_jump) * 1000)::bigint,
    'SEAL', ((((epoch_ms * 35 + l.time_bits - 19) * 25 + l.region_bits) * 25 + l.shard_bits) * 23 + l.sequence_bits) * 4
            + log(l.tick_ms)::bigint)
    FROM CAST(snowflake.tick_shift(l) AS integer) AS shift,
         CAST((extract(epoch FROM max_lead) * 1000)::bigint / l.tick_ms / 2 AS bigint) AS half_lead,
         CAST(extract(epoch FROM l.epoch) * 1000 AS bigint) AS epoch_ms
$$;
COMMENT ON FUNCTION snowflake.engine_words(snowflake.layout, integer, interval, interval, interval) IS
  'Internal: for generator_sql(): returns the numbers that depend on the layout, the region and the time limits. The '
  'keys of the result are placeholders in the templates';

CREATE FUNCTION snowflake.engine_template(pg_tle boolean) RETURNS text
  LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT concat(
    E'-- The SQL engine of snowflake, for servers where its library cannot be installed: PostgreSQL 15 or later.\n'
    '-- Layout {{LAYOUT}}; it mints in region {{REGION}}.\n--\n', trim(E'\n' FROM snowflake.template_sql('head')),
    E'\n\n',
    CASE WHEN pg_tle
         THEN format(E'SELECT pgtle.install_extension(''snowflake'', %L, '
                     '''64-bit time-sortable ids (SQL engine)'', $_pg_tle_$\n',
                     (SELECT extversion FROM pg_extension WHERE extname = 'snowflake'))
         ELSE E'BEGIN;\n' END,
    E'SET LOCAL search_path = pg_catalog, pg_temp;\n',
    regexp_replace(trim(E'\n' FROM snowflake.template_sql('engine')), '\{\{ELSE ([^}]*)\}\}', ' ELSE \1', 'g'),
    CASE WHEN pg_tle
         THEN E'\nSELECT pg_catalog.pg_extension_config_dump(''snowflake.high_water'', '''');'
              '\nSELECT pg_catalog.pg_extension_config_dump(''snowflake.dumped_seal'', '''');\n$_pg_tle_$);\n'
         ELSE E'\nCOMMIT;\n' END)
$$;
COMMENT ON FUNCTION snowflake.engine_template(boolean) IS
  'Internal: for generator_sql(): returns the whole script, with placeholders instead of numbers';

CREATE FUNCTION snowflake.generator_sql(region integer, layout text DEFAULT NULL, tick text DEFAULT '0',
    epoch text DEFAULT '2025-01-01', max_lead interval DEFAULT '1 s', reserve interval DEFAULT '1 s',
    max_forward_jump interval DEFAULT '365 days', pg_tle boolean DEFAULT false) RETURNS text
  LANGUAGE plpgsql STABLE CALLED ON NULL INPUT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  l snowflake.layout;
  script text;
BEGIN
  PERFORM snowflake.refuse_null('generator_sql()', region::text, coalesce(layout, ''), tick, epoch, max_lead::text,
                                reserve::text, max_forward_jump::text, pg_tle::text);
  IF layout IS NULL THEN
    SELECT * INTO l FROM snowflake.layout;
  ELSE
    l := snowflake.preview_layout(layout, tick, epoch);
  END IF;
  PERFORM snowflake.refuse_engine(l, region, max_lead, reserve, max_forward_jump);
  script := snowflake.fill_template(snowflake.engine_template(pg_tle), snowflake.counter_words(l));
  script := snowflake.fill_template(script, snowflake.engine_words(l, region, max_lead, reserve, max_forward_jump));
  RETURN snowflake.fill_template(script, snowflake.layout_words(l, 'snowflake', 'snowflake_sql'));
END
$$;
COMMENT ON FUNCTION snowflake.generator_sql(integer, text, text, text, interval, interval, interval, boolean) IS
  'Returns a script of SQL and PL/pgSQL for servers where the extension cannot be installed. The script creates '
  'functions that mint ids in the given region, and functions that decode ids. By default, the script mints ids of '
  'this database''s layout. To use another layout, pass it in the form that preview_layout() accepts. If pg_tle is '
  'true, the script installs the functions as a trusted language extension';
