-- Contains the templates of engine/, from which decoder_sql() and generator_sql() make scripts of plain SQL.

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

@@ticks.sql@@

@@mint.sql@@

@@api.sql@@
$engine$ END
$template$;
COMMENT ON FUNCTION snowflake.template_sql(text) IS
  'Internal: for decoder_sql() and generator_sql(): returns a template of the printed scripts';

-- Replaces each placeholder {{NAME}} in a template by the value of the key NAME in `words`. The value of an entry in
-- `words` can contain {{NAME}} placeholders of later entries in `words`.
CREATE FUNCTION snowflake.fill_template(template text, words json) RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  filled text := template;
  word record;
BEGIN
  FOR word IN SELECT * FROM json_each_text(words) LOOP
    filled := replace(filled, '{{' || word.key || '}}', word.value);
  END LOOP;
  RETURN filled;
END
$$;
COMMENT ON FUNCTION snowflake.fill_template(text, json) IS
  'Internal: for decoder_sql() and generator_sql(): replaces the placeholders of a template';

CREATE FUNCTION snowflake.layout_words(l snowflake.layout, schema text, helpers text) RETURNS json
  LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET timezone = 'UTC'
  SET datestyle = 'ISO'
AS $$
  SELECT json_build_object(
    'SCHEMA', schema, 'HELPERS', helpers, 'BITS', l.bits, 'TIME_BITS', l.time_bits, 'REGION_BITS', l.region_bits,
    'SHARD_BITS', l.shard_bits, 'SEQUENCE_BITS', l.sequence_bits, 'TICK_MS', l.tick_ms, 'TICK_US', l.tick_ms * 1000,
    'EPOCH_MS', epoch_ms, 'END_MS', epoch_ms + ticks * l.tick_ms,
    'LAYOUT', format('%s, tick %s ms, epoch %s UTC', l.bits, l.tick_ms, to_char(l.epoch, 'YYYY-MM-DD HH24:MI:SS.MS')),
    -- The templates use LAST_ID, not LAST_ID + 1, because LAST_ID + 1 exceeds bigint in a layout of 64 bits.
    'LAST_ID', (ticks - 1) << below | mask, 'TICKS', ticks, 'BELOW_BITS', below, 'BELOW_MASK', mask,
    'REGION_SHIFT', l.shard_bits + l.sequence_bits, 'LAST_REGION', l.regions - 1, 'LAST_SHARD', l.shards - 1,
    'NO_SHARD', -l.shards, 'SHARDS', l.shards, 'LAST_SEQUENCE', (1::bigint << l.sequence_bits) - 1)
    FROM CAST(l.region_bits + l.shard_bits + l.sequence_bits AS integer) AS below,
         -- In a layout of 64 bits, only the first half of the times fits into a bigint.
         CAST(1::bigint << l.time_bits - CASE l.time_bits + below WHEN 64 THEN 1 ELSE 0 END AS bigint) AS ticks,
         CAST((1::bigint << below) - 1 AS bigint) AS mask,
         CAST(extract(epoch FROM l.epoch) * 1000 AS bigint) AS epoch_ms
$$;
COMMENT ON FUNCTION snowflake.layout_words(snowflake.layout, text, text) IS
  'Internal: for decoder_sql() and generator_sql(): returns the numbers in a script that depend on the layout. The '
  'keys of the result are placeholders in the templates';
