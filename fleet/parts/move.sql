-- Moving a shard's schema to another server: what the program snowflake-move-shard needs on both sides.
-- It is used like this: the target subscribes to the source's tables; when they are level, the source is
-- fenced, the last changes arrive, the map is changed, the source's tables are dropped.

CREATE TABLE snowflake_fleet.moving (
  shard integer PRIMARY KEY,
  schema name NOT NULL,
  source text NOT NULL,
  publisher bigint NOT NULL,
  made boolean NOT NULL,
  level timestamptz,
  began timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  arrived timestamptz
);
COMMENT ON TABLE snowflake_fleet.moving IS
  'On a target: shards that are on their way here, by the program snowflake-move-shard';
COMMENT ON COLUMN snowflake_fleet.moving.source IS
  'Where they come from: the name in the map, or a connection string';
COMMENT ON COLUMN snowflake_fleet.moving.publisher IS 'System identifier of that server';
COMMENT ON COLUMN snowflake_fleet.moving.level IS 'When the target was last found level with the source';
COMMENT ON COLUMN snowflake_fleet.moving.made IS
  'Whether the move made the schema; otherwise it was there, empty, and stays when the move is aborted';
COMMENT ON COLUMN snowflake_fleet.moving.arrived IS
  'When the shard was said to be here: there is no way back but a move';

-- A row that is written on the source and arrives on the target: all that was committed before it has
-- arrived as well. Which is known at once, and by no feedback that may be late.
CREATE TABLE snowflake_fleet.move_mark (
  shard integer,
  number bigint,
  PRIMARY KEY (shard, number)
);
COMMENT ON TABLE snowflake_fleet.move_mark IS 'Replicated by snowflake-move-shard along with a shard''s tables';

-- A writer that meets the fence has to begin its transaction anew, with the map as it is then. The
-- SQLSTATE is that of a serialization failure, which applications and drivers retry.
CREATE FUNCTION snowflake_fleet.refuse_write() RETURNS trigger
  LANGUAGE plpgsql
AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'serialization_failure',
    MESSAGE = pg_catalog.format('shard %s moves to another server', TG_ARGV[0]),
    DETAIL = pg_catalog.format('Table %I.%I takes no more changes.', TG_TABLE_SCHEMA, TG_TABLE_NAME),
    HINT = 'Read the map again and retry the transaction.';
END
$$;
COMMENT ON FUNCTION snowflake_fleet.refuse_write() IS
  'The fence: a trigger on the tables of a shard that moves away';

CREATE FUNCTION snowflake_fleet.tables_of(schema name) RETURNS SETOF regclass
  LANGUAGE sql STABLE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
  SELECT c.oid::regclass FROM pg_class AS c
   WHERE relnamespace = (SELECT n.oid FROM pg_namespace AS n WHERE nspname = schema) AND relkind IN ('r', 'p')
   ORDER BY relname
$$;
COMMENT ON FUNCTION snowflake_fleet.tables_of(name) IS 'Behind snowflake-move-shard: the tables of a schema';

-- Locks and fences in the caller's transaction. EXCLUSIVE waits for whoever has begun to write,
-- prepared transactions among them: when it is had, they have committed or rolled back. Readers go on.
-- The caller holds SHARE UPDATE EXCLUSIVE already, so that this does not wait for a vacuum.
CREATE FUNCTION snowflake_fleet.fence(shard integer, schema name) RETURNS void
  LANGUAGE plpgsql VOLATILE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  tables CONSTANT text := string_agg(t::text, ', ') FROM snowflake_fleet.tables_of(schema) AS t;
  this regclass;
BEGIN
  IF tables IS NULL THEN
    RETURN;
  END IF;
  EXECUTE format('LOCK TABLE %s IN EXCLUSIVE MODE', tables);
  FOR this IN SELECT t FROM snowflake_fleet.tables_of(schema) AS t LOOP
    EXECUTE format('CREATE OR REPLACE TRIGGER snowflake_move BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON %s '
                   'FOR EACH STATEMENT EXECUTE FUNCTION snowflake_fleet.refuse_write(%L)', this, shard);
    EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER snowflake_move', this);
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.fence(integer, name) IS
  'Behind snowflake-move-shard: waits for the writers of a shard''s tables, and refuses all others from now on';

CREATE FUNCTION snowflake_fleet.fenced(schema name) RETURNS boolean
  LANGUAGE sql STABLE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
  SELECT coalesce(bool_and(EXISTS (SELECT FROM pg_trigger WHERE tgrelid = t AND tgname = 'snowflake_move' AND tgenabled = 'A')), false)
    FROM snowflake_fleet.tables_of(schema) AS t
$$;
COMMENT ON FUNCTION snowflake_fleet.fenced(name) IS 'Behind snowflake-move-shard: whether all tables of a schema are fenced';

CREATE FUNCTION snowflake_fleet.unfence(schema name) RETURNS void
  LANGUAGE plpgsql VOLATILE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  this regclass;
BEGIN
  FOR this IN SELECT t FROM snowflake_fleet.tables_of(schema) AS t LOOP
    EXECUTE format('DROP TRIGGER IF EXISTS snowflake_move ON %s', this);
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.unfence(name) IS 'Behind snowflake-move-shard: takes a fence away again';

-- What a schema looks like, to be compared with another server's: statements that make its tables, and
-- what else there is. Fences are not part of it.
CREATE FUNCTION snowflake_fleet.shape_of(schema name) RETURNS text
  LANGUAGE plpgsql STABLE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  RETURN coalesce(md5(string_agg(what, E'\n' ORDER BY what COLLATE "C")), '') FROM (
    SELECT regexp_replace(statement, '^ALTER TABLE .* OWNER TO .*|^(GRANT|REVOKE) .*', '') AS what
      FROM snowflake_fleet.tables_of(schema) AS t, snowflake.statements_of(t, -1)
     WHERE statement !~ 'snowflake_move'
    UNION ALL
    SELECT relkind::text || ' ' || relname FROM pg_class
     WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = schema) AND relkind IN ('r', 'p', 'v', 'm', 'S')) AS s;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.shape_of(name) IS
  'Behind snowflake-move-shard: the same for schemas that are alike but for owners and privileges';

-- The state of sequences, to be set on the target: statements of PL/pgSQL.
CREATE FUNCTION snowflake_fleet.sequences_of(schema name) RETURNS SETOF text
  LANGUAGE plpgsql STABLE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  this regclass;
  statement text;
BEGIN
  FOR this IN
    SELECT c.oid FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace
     WHERE nspname = schema AND relkind = 'S' ORDER BY c.oid
  LOOP
    EXECUTE format('SELECT format(''PERFORM pg_catalog.setval(%%L, %%s, %%L);'', %L, last_value, is_called) FROM %s', this, this)
       INTO statement;
    RETURN NEXT statement;
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.sequences_of(name) IS
  'Behind snowflake-move-shard: statements that give sequences the values that they have here';

-- The greatest id of each column that mints or is a key of one bigint: by its index, at once.
CREATE FUNCTION snowflake_fleet.greatest_id(schema name) RETURNS bigint
  LANGUAGE plpgsql STABLE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  this record;
  found bigint;
  greatest_one bigint;
  last_one CONSTANT bigint := CASE WHEN time_bits + region_bits + shard_bits + sequence_bits = 64 THEN 9223372036854775807
                              ELSE (1::bigint << (time_bits + region_bits + shard_bits + sequence_bits)) - 1 END
                              FROM snowflake.layout;
BEGIN
  FOR this IN
    SELECT attrelid::regclass AS relation, attname
      FROM pg_attribute AS a
     WHERE attrelid IN (SELECT t FROM snowflake_fleet.tables_of(schema) AS t) AND attnum > 0 AND atttypid = 'bigint'::regtype
       AND NOT attisdropped
       AND EXISTS (SELECT FROM pg_index WHERE indrelid = attrelid AND indkey[0] = attnum AND indpred IS NULL)
       AND (EXISTS (SELECT FROM pg_attrdef AS d WHERE adrelid = attrelid AND adnum = attnum
                       AND pg_get_expr(adbin, adrelid) LIKE '%snowflake.next_id%')
            OR EXISTS (SELECT FROM pg_index WHERE indrelid = attrelid AND indisprimary AND indnatts = 1 AND indkey[0] = attnum))
  LOOP
    EXECUTE format('SELECT max(%I) FROM %s WHERE %1$I <= %3$s', this.attname, this.relation, last_one) INTO found;
    greatest_one := greatest(greatest_one, found);
  END LOOP;
  RETURN greatest_one;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.greatest_id(name) IS
  'Behind snowflake-move-shard: the greatest id of a schema, which the target is to observe';
