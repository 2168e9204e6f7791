-- Ids where the extension cannot be installed: scripts of plain SQL, made from the templates in engine/.

CREATE FUNCTION snowflake.template_sql(part text) RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $template$
  SELECT CASE part WHEN 'readers' THEN $readers$
@@readers.sql@@

@@texts.sql@@
$readers$ WHEN 'head' THEN $head$
@@head.sql@@
$head$ WHEN 'engine' THEN $engine$
@@state.sql@@

@@refuse.sql@@

-- Readers.

@@readers.sql@@

@@mint.sql@@

@@api.sql@@
$engine$ END
$template$;
COMMENT ON FUNCTION snowflake.template_sql(text) IS 'Internal: for decoder_sql() and generator_sql(): the templates of what they print';

CREATE FUNCTION snowflake.fill_template(template text, l snowflake.layout, schema text, helpers text) RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET datestyle = 'ISO'
AS $$
DECLARE
  below CONSTANT integer := l.region_bits + l.shard_bits + l.sequence_bits;
  -- Where the bits add up to 64, half of the ticks are minted.
  ticks CONSTANT bigint := 1::bigint << l.time_bits - CASE l.time_bits + below WHEN 64 THEN 1 ELSE 0 END;
  mask CONSTANT bigint := (1::bigint << below) - 1;
  epoch_ms CONSTANT bigint := extract(epoch FROM l.epoch) * 1000;
  filled text := template;
  word record;
BEGIN
  FOR word IN SELECT * FROM (VALUES
    ('SCHEMA', schema), ('HELPERS', helpers), ('BITS', l.bits), ('TIME_BITS', l.time_bits::text), ('REGION_BITS', l.region_bits::text),
    ('SHARD_BITS', l.shard_bits::text), ('SEQUENCE_BITS', l.sequence_bits::text), ('TICK_MS', l.tick_ms::text),
    ('TICK_US', (l.tick_ms * 1000)::text), ('EPOCH_MS', epoch_ms::text), ('END_MS', (epoch_ms + ticks * l.tick_ms)::text),
    ('LAYOUT', format('%s, tick %s ms, epoch %s UTC', l.bits, l.tick_ms, to_char(l.epoch, 'YYYY-MM-DD HH24:MI:SS.MS'))),
    -- The last id; with 64 bits one more would be no bigint.
    ('LAST_ID', ((ticks - 1) << below | mask)::text), ('TICKS', ticks::text), ('BELOW_BITS', below::text), ('BELOW_MASK', mask::text),
    ('REGION_SHIFT', (l.shard_bits + l.sequence_bits)::text), ('LAST_REGION', (l.regions - 1)::text), ('LAST_SHARD', (l.shards - 1)::text), ('NO_SHARD', (-l.shards)::text),
    ('SHARDS', l.shards::text), ('LAST_SEQUENCE', ((1::bigint << l.sequence_bits) - 1)::text)) AS v (name, value)
  LOOP
    filled := replace(filled, '{{' || word.name || '}}', word.value);
  END LOOP;
  RETURN filled;
END
$$;
COMMENT ON FUNCTION snowflake.fill_template(text, snowflake.layout, text, text) IS
  'Internal: for decoder_sql() and generator_sql(): a template with the numbers of a layout';

CREATE FUNCTION snowflake.decoder_sql(schema name DEFAULT 'snowflake') RETURNS text
  LANGUAGE plpgsql STABLE CALLED ON NULL INPUT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET datestyle = 'ISO'
AS $$
DECLARE
  l CONSTANT snowflake.layout := l FROM snowflake.layout AS l;
  readers CONSTANT text := regexp_replace(trim(E'\n' FROM snowflake.template_sql('readers')), '\{\{ELSE [^}]*\}\}', '', 'g');
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

%5$s
COMMIT;
$decoder$,
    schema, l.bits, l.tick_ms, l.epoch, snowflake.fill_template(readers, l, quote_ident(schema), quote_ident(schema)));
END
$$;
COMMENT ON FUNCTION snowflake.decoder_sql(name) IS
  'A script of plain SQL that makes a schema with readers of this database''s ids (decode, bounds of time, base62, base32, UUID, ULID, shard_for), for servers of PostgreSQL 14 or later that do not have the extension';

CREATE FUNCTION snowflake.generator_sql(region integer, layout text DEFAULT NULL, tick text DEFAULT '0', epoch text DEFAULT '2025-01-01',
    max_lead interval DEFAULT '1 s', reserve interval DEFAULT '1 s', max_forward_jump interval DEFAULT '365 days', pg_tle boolean DEFAULT false)
  RETURNS text
  LANGUAGE plpgsql STABLE CALLED ON NULL INPUT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  l snowflake.layout;
  half_lead bigint;   -- in ticks
  per_tick bigint;
  -- A position has 63 bits: the tick, and its number. What the numbers of a tick leave is for its overflow.
  shift integer;
  many integer := 1;
  counters text;
  script text;
  word record;
BEGIN
  PERFORM snowflake.refuse_null('generator_sql()', region::text, coalesce(layout, ''), tick, epoch, max_lead::text, reserve::text,
                                max_forward_jump::text, pg_tle::text);
  IF layout IS NULL THEN
    SELECT * INTO l FROM snowflake.layout;
  ELSE
    l := snowflake.preview_layout(layout, tick, epoch);
  END IF;
  half_lead := (extract(epoch FROM max_lead) * 1000)::bigint / l.tick_ms / 2;
  per_tick := 1::bigint << l.sequence_bits;
  shift := 63 - l.time_bits + CASE l.time_bits + l.region_bits + l.shard_bits + l.sequence_bits WHEN 64 THEN 1 ELSE 0 END;
  IF region NOT BETWEEN 0 AND l.regions - 1 THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = format('region %s is out of range', region),
      DETAIL = format('Layout %s has regions 0 to %s.', l.bits, l.regions - 1), HINT = 'Pass a region of the layout.';
  ELSIF (1::bigint << shift) - per_tick < 262144 THEN
    RAISE EXCEPTION USING ERRCODE = 'feature_not_supported', MESSAGE = format('the SQL engine cannot mint ids of layout %s', l.bits),
      DETAIL = format('A tick and %s numbers for each of its ids and of 262144 sessions do not fit into 63 bits.', per_tick),
      HINT = 'Choose a layout with fewer time bits, or with region and shard bits.';
  ELSIF max_lead < '0' OR max_lead > '1 min' OR reserve < '100 ms' OR reserve > '1 min' OR max_forward_jump < '1 s' THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = 'a time of the SQL engine is out of range',
      DETAIL = format('max_lead %s is 0 to 1 minute, reserve %s 100 ms to 1 minute, max_forward_jump %s at least 1 second.', max_lead, reserve, max_forward_jump),
      HINT = 'Leave them out for the defaults.';
  END IF;
  -- Counters for a million ids a second, where a tick has few.
  WHILE many < 32 AND many < l.shards AND many * l.ids_per_second < 1000000 LOOP
    many := many * 2;
  END LOOP;
  counters := (SELECT string_agg('snowflake_sql.counter_' || n, ',' ORDER BY n) FROM generate_series(0, many - 1) AS n);
  script := regexp_replace(trim(E'\n' FROM snowflake.template_sql('engine')), '\{\{ELSE ([^}]*)\}\}', ' ELSE \1', 'g');
  script := concat('-- The SQL engine of snowflake, for servers where its library cannot be installed: PostgreSQL 15 or later.', E'\n',
    '-- Layout {{LAYOUT}}; it mints in region {{REGION}}.', E'\n--\n', trim(E'\n' FROM snowflake.template_sql('head')), E'\n\n',
    CASE WHEN pg_tle THEN format('SELECT pgtle.install_extension(''snowflake'', %L, ', (SELECT extversion FROM pg_extension WHERE extname = 'snowflake')) || E'''64-bit time-sortable ids (SQL engine)'', $_pg_tle_$\n' ELSE E'BEGIN;\n' END,
    E'SET LOCAL search_path = pg_catalog, pg_temp;\n', script,
    CASE WHEN pg_tle THEN E'\nSELECT pg_catalog.pg_extension_config_dump(''snowflake.high_water'', '''');\nSELECT pg_catalog.pg_extension_config_dump(''snowflake.dumped_seal'', '''');\n$_pg_tle_$);\n'
         ELSE E'\nCOMMIT;\n' END);
  FOR word IN SELECT * FROM (VALUES
    ('CREATE_COUNTERS', (SELECT string_agg(format('CREATE UNLOGGED SEQUENCE snowflake_sql.counter_%s AS bigint MINVALUE 0 START 0;', n), E'\n' ORDER BY n)
                           FROM generate_series(0, many - 1) AS n)),
    ('COUNTERS', format('''{%s}''::regclass[]', counters)),
    ('COUNTER', CASE many WHEN 1 THEN format('''%s''::regclass', counters) ELSE format('(''{%s}''::regclass[])[1 + (shard & %s)]', counters, many - 1) END),
    ('FAST_COUNTER', CASE many WHEN 1 THEN format('''%s''::pg_catalog.regclass', counters)
       ELSE format('(''{%s}''::pg_catalog.regclass[])[1 OPERATOR(pg_catalog.+) (shard OPERATOR(pg_catalog.&) %s)]', counters, many - 1) END),
    ('FAST_POSITION', CASE shift WHEN l.region_bits + l.shard_bits + l.sequence_bits THEN 'drawn'
       ELSE '((drawn OPERATOR(pg_catalog.>>) {{TICK_SHIFT}}) OPERATOR(pg_catalog.<<) {{BELOW_BITS}}) OPERATOR(pg_catalog.|) (drawn OPERATOR(pg_catalog.&) {{LAST_SEQUENCE}})' END),
    ('FAST_TIME', '(seen OPERATOR(pg_catalog.>>) {{TICK_SHIFT}})' || CASE l.tick_ms WHEN 1 THEN '' ELSE ' OPERATOR(pg_catalog.*) {{TICK_MS}}' END
                  || ' OPERATOR(pg_catalog.+) {{EPOCH_MS}}'),
    ('FAST_REGION', CASE region WHEN 0 THEN '' ELSE ' OPERATOR(pg_catalog.|) {{REGION_PLACE}}' END),
    ('EARLY_EPOCH_US', ((extract(epoch FROM l.epoch) * 1000)::bigint * 1000 - half_lead * l.tick_ms * 1000)::text),
    ('HALF_LEAD_TICKS', half_lead::text),
    ('TICK_SHIFT', shift::text), ('TICK_MASK', ((1::bigint << shift) - 1)::text), ('PER_TICK', per_tick::text),
    ('REGION', region::text), ('REGION_PLACE', (region::bigint << l.shard_bits + l.sequence_bits)::text),
    ('LEAD_MS', (2 * half_lead * l.tick_ms)::text), ('LEAD_TICKS', (2 * half_lead)::text), ('RESERVE_MS', (extract(epoch FROM reserve) * 1000)::bigint::text),
    ('JUMP_MS', (extract(epoch FROM max_forward_jump) * 1000)::bigint::text),
    ('SEAL', ((((((extract(epoch FROM l.epoch) * 1000)::bigint * 35 + l.time_bits - 19) * 25 + l.region_bits) * 25 + l.shard_bits) * 23
              + l.sequence_bits) * 4 + log(l.tick_ms)::bigint)::text)) AS v (name, value)
  LOOP
    script := replace(script, '{{' || word.name || '}}', word.value);
  END LOOP;
  RETURN snowflake.fill_template(script, l, 'snowflake', 'snowflake_sql');
END
$$;
COMMENT ON FUNCTION snowflake.generator_sql(integer, text, text, text, interval, interval, interval, boolean) IS
  'A script of SQL and PL/pgSQL that mints and reads ids in a region, for servers where the extension cannot be installed: of this database''s layout, or of another one, as preview_layout() takes it; with pg_tle as an extension for trusted language extensions';
