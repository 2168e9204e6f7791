-- A schema stands still while it moves: DDL that would change it is refused, whatever its form. It is not the
-- statement that is looked at, but what it has done to the catalogues.

-- Every row of the catalogues that belongs to the schema, but for what changes by itself (vacuum, analyze,
-- rewriting) and the fence. Two parts: the second is of sequences, whose limits the fence changes. Found by
-- indexes alone: it is computed while writers wait.
CREATE FUNCTION snowflake_fleet.fingerprint(schema name) RETURNS text
  LANGUAGE plpgsql STABLE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  space CONSTANT oid := (SELECT n.oid FROM pg_namespace AS n WHERE nspname = schema);
  described text;
  sequences text;
BEGIN
  IF space IS NULL THEN
    RETURN NULL;
  END IF;
  WITH contained AS MATERIALIZED (
    SELECT classid, objid FROM pg_depend WHERE refclassid = 'pg_namespace'::regclass AND refobjid = space
  ), rel AS MATERIALIZED (
    SELECT c.* FROM contained JOIN pg_class AS c ON classid = 'pg_class'::regclass AND c.oid = objid
     WHERE relnamespace = space
  ), ind AS MATERIALIZED (
    SELECT i.* FROM rel JOIN pg_index AS i ON indrelid = rel.oid
  ), con AS MATERIALIZED (
    SELECT c.* FROM rel JOIN pg_constraint AS c ON conrelid = rel.oid
  ), part (classid, objid, line) AS MATERIALIZED (
    SELECT 'pg_namespace'::regclass::oid, n.oid, to_jsonb(n)::text || nspowner::regrole FROM pg_namespace AS n WHERE n.oid = space
    UNION ALL
    SELECT 'pg_class'::regclass, c.oid, (to_jsonb(c) - ARRAY['relfilenode', 'relpages', 'reltuples', 'relallvisible', 'relallfrozen',
                                   'relfrozenxid', 'relminmxid', 'relhasindex', 'relhastriggers', 'relhasrules', 'relrewrite'])::text || relowner::regrole
      FROM (SELECT * FROM rel UNION ALL SELECT c.* FROM ind JOIN pg_class AS c ON c.oid = indexrelid) AS c
    UNION ALL
    SELECT 'pg_class'::regclass, t.oid, t.reloptions::text FROM rel JOIN pg_class AS t ON t.oid = rel.reltoastrelid
    UNION ALL
    SELECT 0, 0, (to_jsonb(a) - ARRAY['attcacheoff', 'attmissingval', 'atthasmissing'])::text
      FROM rel JOIN pg_attribute AS a ON attrelid = rel.oid WHERE attnum > 0
    UNION ALL
    SELECT 0, 0, (to_jsonb(a) - ARRAY['attcacheoff'])::text FROM ind JOIN pg_attribute AS a ON attrelid = indexrelid
    UNION ALL
    SELECT 0, 0, (to_jsonb(i) - 'indcheckxmin')::text FROM ind AS i
    UNION ALL
    SELECT 'pg_attrdef'::regclass, d.oid, to_jsonb(d)::text FROM rel JOIN pg_attrdef AS d ON adrelid = rel.oid
    UNION ALL
    SELECT 'pg_constraint'::regclass, con.oid, to_jsonb(con)::text FROM con
    UNION ALL
    SELECT 'pg_trigger'::regclass, t.oid, to_jsonb(t)::text FROM rel JOIN pg_trigger AS t ON tgrelid = rel.oid WHERE tgname <> 'snowflake_move'
    UNION ALL
    SELECT classid, objid, to_jsonb(o)::text FROM contained JOIN pg_statistic_ext AS o ON classid = 'pg_statistic_ext'::regclass AND o.oid = objid
    UNION ALL
    -- Objects of other kinds are refused: it is enough that one is there.
    SELECT classid, objid, 'contains' FROM contained
    UNION ALL
    -- Who owns a sequence; what belongs to an extension.
    SELECT 0, 0, format('%s %s %s', d.objid, d.refobjid, d.refobjsubid)
      FROM rel JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass AND d.objid = rel.oid AND deptype IN ('a', 'i', 'e', 'x')
    UNION ALL
    -- What hangs on the tables, wherever it is; not the fence, and not the move's own publication.
    SELECT 0, 0, format('%s %s %s %s', d.classid, d.objid, d.objsubid, d.refobjid)
      FROM rel JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = rel.oid AND d.classid <> 'pg_trigger'::regclass
       AND NOT (d.classid = 'pg_publication_rel'::regclass AND EXISTS (
                SELECT FROM pg_publication_rel AS r JOIN pg_publication AS p ON p.oid = prpubid
                 WHERE r.oid = d.objid AND pubname ~ '^snowflake_move_[0-9]+$'))
  )
  SELECT md5(string_agg(line, E'\n' ORDER BY line COLLATE "C")) INTO described FROM (
    SELECT line FROM part
    UNION ALL
    SELECT to_jsonb(c)::text FROM part JOIN pg_description AS c ON objoid = part.objid AND classoid = part.classid WHERE line <> 'contains'
    UNION ALL
    SELECT to_jsonb(c)::text FROM part JOIN pg_seclabel AS c ON objoid = part.objid AND classoid = part.classid WHERE line <> 'contains') AS all_of_it;

  SELECT coalesce(md5(string_agg(to_jsonb(s)::text, E'\n' ORDER BY seqrelid)), '') INTO sequences
    FROM pg_depend AS d JOIN pg_sequence AS s ON classid = 'pg_class'::regclass AND seqrelid = objid
   WHERE refclassid = 'pg_namespace'::regclass AND refobjid = space;
  RETURN described || ' ' || sequences;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.fingerprint(name) IS
  'Internal: the same as long as nothing alters a schema; comparable within one database only. NULL if the schema does not exist';

CREATE FUNCTION snowflake_fleet.is_altered(moving snowflake_fleet.moving) RETURNS boolean
  LANGUAGE plpgsql STABLE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  now_is CONSTANT text := snowflake_fleet.fingerprint(moving.schema);
BEGIN
  -- The fence has taken the sequences out of use, and is itself no part of the fingerprint.
  RETURN CASE WHEN moving.fence IS NULL THEN now_is IS DISTINCT FROM moving.fingerprint
              ELSE split_part(now_is, ' ', 1) IS DISTINCT FROM split_part(moving.fingerprint, ' ', 1) END
      OR moving.state IN ('fenced', 'kept') AND NOT snowflake_fleet.fenced(moving.schema);
END
$$;
COMMENT ON FUNCTION snowflake_fleet.is_altered(snowflake_fleet.moving) IS
  'Internal: whether a schema was altered since its row was written';

-- Runs with the rights of the owner: sessions that run DDL need not read the table. What event triggers do not see (REINDEX
-- CONCURRENTLY, the new name of a role, DDL in a snapshot from before the move) alters a schema as well, and the fence finds it.
-- So that the next command of another session is not refused for it, each command begins with a note of what is altered already.
CREATE FUNCTION snowflake_fleet.refuse_ddl() RETURNS event_trigger
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  this snowflake_fleet.moving;
  rewritten name;
BEGIN
  IF snowflake_fleet.holds_move() THEN
    RETURN;
  END IF;
  IF tg_event = 'table_rewrite' THEN
    rewritten := (SELECT nspname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace WHERE c.oid = pg_event_trigger_table_rewrite_oid());
  END IF;
  -- A comparison costs some milliseconds. There may be hundreds of schemas that are kept: of these, the ones that are named.
  FOR this IN
    SELECT m.* FROM snowflake_fleet.moving AS m
     WHERE m.side = 'source' AND m.fingerprint IS NOT NULL AND (m.state <> 'kept' OR strpos(current_query(), m.schema) > 0)
  LOOP
    CONTINUE WHEN CASE tg_event
      WHEN 'ddl_command_end' THEN NOT snowflake_fleet.is_altered(this)
                                  OR strpos(current_setting('snowflake_fleet.altered', true), concat(statement_timestamp(), this.id)) > 0
      -- It may give a table other rows, which no change of a row tells of.
      WHEN 'table_rewrite' THEN this.state = 'kept' OR rewritten IS DISTINCT FROM this.schema
      -- These commit before they end: what they did could not be taken back.
      ELSE NOT (tg_tag IN ('CREATE INDEX', 'DROP INDEX', 'ALTER TABLE') AND current_query() ~* '\mconcurrently\M' AND strpos(current_query(), this.schema) > 0) END;
    RAISE EXCEPTION USING ERRCODE = 'object_in_use',
      MESSAGE = CASE WHEN this.state = 'kept' THEN format('schema %I is what was left of shard %s when it moved away', this.schema, this.shard)
                     ELSE format('schema %I moves to another server', this.schema) END,
      DETAIL = format('%s would change it.', tg_tag),
      HINT = CASE WHEN this.state = 'kept' THEN 'To remove it, run snowflake-move-shard --drop-source.'
                  ELSE 'Repeat it when the move has ended, or end the move with snowflake-move-shard --abort.' END;
  END LOOP;
  IF tg_event = 'ddl_command_start' THEN
    PERFORM set_config('snowflake_fleet.altered', string_agg(concat(statement_timestamp(), m.id), ' '), true)
       FROM snowflake_fleet.moving AS m
      WHERE m.side = 'source' AND m.fingerprint IS NOT NULL AND (m.state <> 'kept' OR strpos(current_query(), m.schema) > 0) AND snowflake_fleet.is_altered(m);
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.refuse_ddl() IS
  'Internal: refuses DDL that changes a schema which is moving';

-- Only a superuser can make them. A control database that an ordinary role made has no shards; refusals() looks for them.
DO $$
BEGIN
  IF NOT (SELECT r.rolsuper FROM pg_catalog.pg_roles AS r WHERE r.rolname OPERATOR(pg_catalog.=) CURRENT_USER) THEN
    RETURN;
  END IF;
  CREATE EVENT TRIGGER snowflake_move_guard ON ddl_command_end EXECUTE FUNCTION snowflake_fleet.refuse_ddl();
  ALTER EVENT TRIGGER snowflake_move_guard ENABLE ALWAYS;
  COMMENT ON EVENT TRIGGER snowflake_move_guard IS 'A schema stands still while snowflake-move-shard moves it';
  CREATE EVENT TRIGGER snowflake_move_guard_start ON ddl_command_start EXECUTE FUNCTION snowflake_fleet.refuse_ddl();
  ALTER EVENT TRIGGER snowflake_move_guard_start ENABLE ALWAYS;
  CREATE EVENT TRIGGER snowflake_move_guard_rewrite ON table_rewrite EXECUTE FUNCTION snowflake_fleet.refuse_ddl();
  ALTER EVENT TRIGGER snowflake_move_guard_rewrite ENABLE ALWAYS;
  COMMENT ON EVENT TRIGGER snowflake_move_guard_rewrite IS 'The same for ALTER TABLE that gives a table other rows and leaves its definition as it was';
  COMMENT ON EVENT TRIGGER snowflake_move_guard_start IS 'The same for what commits while it runs: CONCURRENTLY; and notes what is altered before a command';
END
$$;

REVOKE ALL ON FUNCTION snowflake_fleet.fingerprint(name), snowflake_fleet.is_altered(snowflake_fleet.moving),
  snowflake_fleet.refuse_ddl() FROM PUBLIC;
