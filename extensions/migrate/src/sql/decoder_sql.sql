-- decoder_sql() prints functions that read ids, for servers without the extension.

CREATE FUNCTION snowflake.decoder_sql(schema name DEFAULT 'snowflake') RETURNS text
  LANGUAGE plpgsql STABLE CALLED ON NULL INPUT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET timezone = 'UTC'
  SET datestyle = 'ISO'
AS $$
DECLARE
  l CONSTANT snowflake.layout := l FROM snowflake.layout AS l;
  readers CONSTANT text := regexp_replace(trim(E'\n' FROM snowflake.template_sql('readers')), '\{\{ELSE [^}]*\}\}', '',
                                          'g');
BEGIN
  PERFORM snowflake.refuse_null('decoder_sql()', schema::text);
  IF schema IN ('', 'information_schema') OR starts_with(schema::text, 'pg_') THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_schema_name',
      MESSAGE = format('schema name "%s" is not allowed', schema),
      DETAIL = 'PostgreSQL reserves "information_schema" and names that begin with "pg_". A name cannot be empty.',
      HINT = 'Pass another schema name, or omit the argument to use "snowflake".';
  END IF;
  RETURN format($decoder$-- Readers of ids of layout %2$s, tick %3$s ms, epoch %4$s, in plain SQL.
-- Functions that read ids on PostgreSQL 14 or later, without the extension snowflake. If a number is not an id of this
-- layout, the functions return null.
BEGIN;
CREATE SCHEMA %1$I;
COMMENT ON SCHEMA %1$I IS 'Functions that read ids of layout %2$s, tick %3$s ms, epoch %4$s';
GRANT USAGE ON SCHEMA %1$I TO PUBLIC;

%5$s
COMMIT;
$decoder$,
    schema, l.bits, l.tick_ms, l.epoch,
    snowflake.fill_template(readers, snowflake.layout_words(l, quote_ident(schema), quote_ident(schema))));
END
$$;
COMMENT ON FUNCTION snowflake.decoder_sql(name) IS
  'Returns a script of plain SQL for servers of PostgreSQL 14 or later without the extension. The script creates a '
  'schema with functions that read ids of this database: decode(), the smallest and greatest ids of a time, base62, '
  'base32, UUID, ULID, shard_for()';
