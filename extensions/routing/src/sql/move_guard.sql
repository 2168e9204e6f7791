-- Refuses DDL that changes a schema while the schema moves to another server. The event triggers compare catalogue rows
-- to detect a change, and do not parse the statement.

-- Returns one hash over the catalogue rows of the schema's objects and over the reasons why the schema cannot be moved.
-- The hash leaves out catalogue columns that change without DDL, such as relpages, and catalogue columns that
-- fence_shard() changes. Locks no table, because sessions that run DDL on other schemas must not wait.
CREATE FUNCTION snowflake_fleet.fingerprint(schema name) RETURNS text
  LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
  WITH part AS MATERIALIZED (
    SELECT p.classid, p.objid FROM snowflake_fleet.parts_of(schema) AS p
  ), line AS (
    SELECT (to_jsonb(c) - ARRAY['relfilenode', 'relpages', 'reltuples', 'relallvisible', 'relallfrozen',
                                'relfrozenxid', 'relminmxid', 'relhasindex', 'relhastriggers', 'relhasrules',
                                'relrewrite'])::text AS text
      FROM part JOIN pg_class AS c ON classid = 'pg_class'::regclass AND c.oid = objid
    UNION ALL SELECT (to_jsonb(a) - ARRAY['attcacheoff', 'attmissingval', 'atthasmissing'])::text
      FROM part JOIN pg_attribute AS a ON classid = 'pg_class'::regclass AND attrelid = objid WHERE attnum > 0
    UNION ALL SELECT (to_jsonb(i) - 'indcheckxmin')::text
      FROM part JOIN pg_index AS i ON classid = 'pg_class'::regclass AND indexrelid = objid
    UNION ALL SELECT (to_jsonb(s) - 'seqcycle')::text
      FROM part JOIN pg_sequence AS s ON classid = 'pg_class'::regclass AND seqrelid = objid
    -- pg_depend shows the column that owns a sequence, and the members of an extension.
    UNION ALL SELECT to_jsonb(d)::text
      FROM part JOIN pg_depend AS d USING (classid, objid) WHERE classid = 'pg_class'::regclass
    UNION ALL SELECT to_jsonb(d)::text
      FROM part JOIN pg_attrdef AS d ON classid = 'pg_attrdef'::regclass AND d.oid = objid
    UNION ALL SELECT to_jsonb(c)::text
      FROM part JOIN pg_constraint AS c ON classid = 'pg_constraint'::regclass AND c.oid = objid
    UNION ALL SELECT to_jsonb(t)::text
      FROM part JOIN pg_trigger AS t ON classid = 'pg_trigger'::regclass AND t.oid = objid
     WHERE tgname <> 'snowflake_move'
    UNION ALL SELECT to_jsonb(o)::text
      FROM part JOIN pg_statistic_ext AS o ON classid = 'pg_statistic_ext'::regclass AND o.oid = objid
    UNION ALL SELECT to_jsonb(n)::text || coalesce(obj_description(n.oid, 'pg_namespace'), '')
      FROM pg_namespace AS n WHERE nspname = schema
    UNION ALL SELECT to_jsonb(d)::text FROM part JOIN pg_description AS d ON classoid = classid AND objoid = objid
    UNION ALL SELECT t FROM snowflake_fleet.refused_tables(schema) AS t
    UNION ALL SELECT u FROM snowflake_fleet.refused_uses(schema) AS u
  )
  SELECT md5(string_agg(text, E'\n' ORDER BY text COLLATE "C")) FROM line
$$;
COMMENT ON FUNCTION snowflake_fleet.fingerprint(name) IS
  'Internal: returns a value that changes when a schema is altered, or NULL if the schema does not exist. Two '
  'fingerprints can be compared only if both are from the same database';

CREATE FUNCTION snowflake_fleet.is_altered(moving snowflake_fleet.moving) RETURNS boolean
  LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
  SELECT snowflake_fleet.fingerprint(moving.schema) IS DISTINCT FROM moving.fingerprint
      OR moving.state IN ('fenced', 'kept') AND NOT snowflake_fleet.fenced(moving.schema)
$$;
COMMENT ON FUNCTION snowflake_fleet.is_altered(snowflake_fleet.moving) IS
  'Internal: returns whether the schema of a moving shard was altered since its fingerprint was stored in the table '
  'moving';

-- refuse_ddl() has the rights of its owner, because sessions that run DDL may not read the table of moves. While a
-- schema moves to another server, event triggers do not detect REINDEX CONCURRENTLY, or DDL in transactions that began
-- before the move. For a moving schema, fence_shard() detects REINDEX CONCURRENTLY, and DDL in transactions that began
-- before the move of the schema. At the event ddl_command_end, refuse_ddl() refuses no command because of a schema that
-- an earlier command has altered.
CREATE FUNCTION snowflake_fleet.refuse_ddl() RETURNS event_trigger
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  this snowflake_fleet.moving;
  query CONSTANT text := current_query();
  rewritten CONSTANT oid := CASE tg_event WHEN 'table_rewrite' THEN pg_event_trigger_table_rewrite_oid() END;
  note text := '';
BEGIN
  IF snowflake_fleet.holds_move() THEN
    RETURN;
  END IF;
  -- Checks the schema of a shard that has moved away only if the statement names it, because hundreds may exist.
  FOR this IN
    SELECT m.* FROM snowflake_fleet.moving AS m
     WHERE m.side = 'source' AND m.fingerprint IS NOT NULL AND (m.state <> 'kept' OR strpos(query, m.schema) > 0)
  LOOP
    IF tg_event = 'ddl_command_start' AND snowflake_fleet.is_altered(this) THEN
      note := concat(note, statement_timestamp(), this.id);
    END IF;
    CONTINUE WHEN CASE tg_event
      WHEN 'ddl_command_end' THEN NOT snowflake_fleet.is_altered(this) OR strpos(
        current_setting('snowflake_fleet.altered', true), concat(statement_timestamp(), this.id)) > 0
      -- A table rewrite may change rows, and logical replication does not send these changes.
      WHEN 'table_rewrite' THEN this.state = 'kept' OR NOT EXISTS (
        SELECT FROM pg_class WHERE oid = rewritten AND relnamespace = to_regnamespace(quote_ident(this.schema)))
      -- A command with CONCURRENTLY commits before it ends, so an error at its end could not roll it back.
      ELSE tg_tag NOT IN ('CREATE INDEX', 'DROP INDEX', 'ALTER TABLE') OR query !~* '\mconcurrently\M'
        OR strpos(query, this.schema) = 0 END;
    RAISE EXCEPTION USING ERRCODE = 'object_in_use',
      MESSAGE = format(CASE this.state WHEN 'kept' THEN 'schema %I was kept when shard %s moved away'
                       ELSE 'schema %I is being moved to another server' END, this.schema, this.shard),
      DETAIL = format('%s would change the schema.', tg_tag),
      HINT = CASE this.state WHEN 'kept' THEN 'To drop the schema, run snowflake-move-shard --drop-source.'
             ELSE 'Repeat the command after the move, or end the move with snowflake-move-shard --abort.' END;
  END LOOP;
  IF tg_event = 'ddl_command_start' THEN
    PERFORM set_config('snowflake_fleet.altered', note, true);
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.refuse_ddl() IS
  'Internal: raises an error if a DDL statement changes the schema of a shard that is moving';

-- Only a superuser can create event triggers. If an ordinary role creates the extension, refusals() reports that the
-- event triggers are missing.
DO $$
DECLARE
  guard text;
  event text;
  what text;
BEGIN
  IF NOT (SELECT r.rolsuper FROM pg_catalog.pg_roles AS r WHERE r.rolname OPERATOR(pg_catalog.=) CURRENT_USER) THEN
    RETURN;
  END IF;
  FOR guard, event, what IN VALUES
    ('snowflake_move_guard', 'ddl_command_end',
     'Refuses changes of a schema while snowflake-move-shard moves the schema'),
    ('snowflake_move_guard_start', 'ddl_command_start',
     'The same for CONCURRENTLY commands, which commit while they run. Also records schemas that were already altered'),
    ('snowflake_move_guard_rewrite', 'table_rewrite',
     'The same for commands that rewrite rows under an unchanged definition')
  LOOP
    EXECUTE pg_catalog.format('CREATE EVENT TRIGGER %I ON %I EXECUTE FUNCTION snowflake_fleet.refuse_ddl()',
                              guard, event);
    EXECUTE pg_catalog.format('ALTER EVENT TRIGGER %I ENABLE ALWAYS; COMMENT ON EVENT TRIGGER %1$I IS %L', guard, what);
  END LOOP;
END
$$;
