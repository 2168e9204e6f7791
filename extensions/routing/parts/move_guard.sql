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
    UNION ALL
    SELECT c.* FROM contained JOIN pg_type AS t ON classid = 'pg_type'::regclass AND t.oid = objid
      JOIN pg_class AS c ON c.oid = typrelid AND c.relkind = 'c'
  ), ind AS MATERIALIZED (
    SELECT i.* FROM rel JOIN pg_index AS i ON indrelid = rel.oid
  ), typ AS MATERIALIZED (
    SELECT objid AS oid FROM contained WHERE classid = 'pg_type'::regclass
    UNION SELECT reltype FROM rel WHERE reltype <> 0
    UNION SELECT typarray FROM rel JOIN pg_type AS t ON t.oid = reltype WHERE typarray <> 0
    UNION SELECT typarray FROM contained JOIN pg_type AS t ON classid = 'pg_type'::regclass AND t.oid = objid WHERE typarray <> 0
  ), con AS MATERIALIZED (
    SELECT c.* FROM rel JOIN pg_constraint AS c ON conrelid = rel.oid
    UNION ALL
    SELECT c.* FROM typ JOIN pg_constraint AS c ON contypid = typ.oid AND contypid <> 0
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
    SELECT 'pg_rewrite'::regclass, r.oid, to_jsonb(r)::text FROM rel JOIN pg_rewrite AS r ON ev_class = rel.oid
    UNION ALL
    SELECT 'pg_policy'::regclass, p.oid, to_jsonb(p)::text || (SELECT string_agg(role::regrole::text, ' ') FROM unnest(polroles) AS role)
      FROM rel JOIN pg_policy AS p ON polrelid = rel.oid
    UNION ALL
    SELECT 0, 0, to_jsonb(i)::text FROM rel JOIN pg_inherits AS i ON inhrelid = rel.oid
    UNION ALL
    SELECT 0, 0, to_jsonb(p)::text FROM rel JOIN pg_partitioned_table AS p ON partrelid = rel.oid
    UNION ALL
    SELECT 'pg_type'::regclass, t.oid, to_jsonb(t)::text || typowner::regrole FROM typ JOIN pg_type AS t USING (oid)
    UNION ALL
    SELECT 'pg_cast'::regclass, c.oid, to_jsonb(c)::text FROM pg_cast AS c
     WHERE castsource IN (SELECT t.oid FROM typ AS t) OR casttarget IN (SELECT t.oid FROM typ AS t)
    UNION ALL
    SELECT 0, 0, to_jsonb(e)::text FROM typ JOIN pg_enum AS e ON enumtypid = typ.oid
    UNION ALL
    SELECT 0, 0, to_jsonb(r)::text FROM typ JOIN pg_range AS r ON rngtypid = typ.oid
    UNION ALL
    SELECT 'pg_proc'::regclass, p.oid, to_jsonb(p)::text || proowner::regrole
      FROM contained JOIN pg_proc AS p ON classid = 'pg_proc'::regclass AND p.oid = objid
    UNION ALL
    SELECT 0, 0, to_jsonb(a)::text FROM contained JOIN pg_aggregate AS a ON classid = 'pg_proc'::regclass AND aggfnoid = objid
    UNION ALL
    SELECT classid, objid, to_jsonb(o)::text FROM contained JOIN pg_operator AS o ON classid = 'pg_operator'::regclass AND o.oid = objid
    UNION ALL
    SELECT classid, objid, to_jsonb(o)::text FROM contained JOIN pg_opclass AS o ON classid = 'pg_opclass'::regclass AND o.oid = objid
    UNION ALL
    SELECT classid, objid, to_jsonb(o)::text FROM contained JOIN pg_opfamily AS o ON classid = 'pg_opfamily'::regclass AND o.oid = objid
    UNION ALL
    SELECT 0, 0, to_jsonb(o)::text FROM contained JOIN pg_amop AS o ON classid = 'pg_opfamily'::regclass AND amopfamily = objid
    UNION ALL
    SELECT 0, 0, to_jsonb(o)::text FROM contained JOIN pg_amproc AS o ON classid = 'pg_opfamily'::regclass AND amprocfamily = objid
    UNION ALL
    SELECT classid, objid, to_jsonb(o)::text FROM contained JOIN pg_collation AS o ON classid = 'pg_collation'::regclass AND o.oid = objid
    UNION ALL
    SELECT classid, objid, to_jsonb(o)::text FROM contained JOIN pg_statistic_ext AS o ON classid = 'pg_statistic_ext'::regclass AND o.oid = objid
    UNION ALL
    SELECT classid, objid, to_jsonb(o)::text FROM contained JOIN pg_default_acl AS o ON classid = 'pg_default_acl'::regclass AND o.oid = objid
    UNION ALL
    -- Also what there is of other kinds, if not how it is made: those are refused before.
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
  'Behind snowflake-move-shard: the same as long as nothing alters a schema, that is, as long as pg_dump --schema-only would '
  'print the same; comparable within one database only. NULL where there is no such schema';

CREATE FUNCTION snowflake_fleet.is_altered(moving snowflake_fleet.moving) RETURNS boolean
  LANGUAGE plpgsql STABLE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  now_is CONSTANT text := snowflake_fleet.fingerprint(moving.schema);
BEGIN
  -- The fence has taken the sequences out of use, and is itself no part of the fingerprint.
  RETURN CASE WHEN moving.sequences IS NULL THEN now_is IS DISTINCT FROM moving.fingerprint
              ELSE split_part(now_is, ' ', 1) IS DISTINCT FROM split_part(moving.fingerprint, ' ', 1) END
      OR moving.state IN ('fenced', 'moved', 'kept') AND NOT snowflake_fleet.fenced(moving.schema);
END
$$;
COMMENT ON FUNCTION snowflake_fleet.is_altered(snowflake_fleet.moving) IS
  'Behind snowflake-move-shard: whether a schema is not any more what it was when its row was written';

-- Functions are looked up in the catalogues as they are now, whatever the snapshot; a table is not. PL/pgSQL, for SQL would be
-- inlined into plans that are kept.
CREATE FUNCTION snowflake_fleet.move_boundary() RETURNS xid8
  LANGUAGE plpgsql STABLE
AS $$BEGIN RETURN '0'; END$$;
COMMENT ON FUNCTION snowflake_fleet.move_boundary() IS
  'Internal: the transaction from which on snapshots see the last move that has begun; snowflake-move-shard replaces it';

-- With the rights of the owner: whoever runs DDL need not read the table. Snapshots that are older than the move do not see
-- its row, also where they are handed on or made later of an earlier moment: their DDL is refused. The move waits for those
-- that may have run DDL before that, and looks again at the fence.
--
-- What event triggers do not see (REINDEX CONCURRENTLY, the new name of a role, pg_upgrade) alters a schema as well. The
-- command that comes next has not done it, and is none of the move's business, which ends at the fence. So it is noted
-- before a command what is altered already, where nobody else can write. On the target that excuses nobody: what is altered
-- there might be a trigger's way to rows that a superuser applies, and ANALYZE has an owner's functions run in a superuser's session.
CREATE FUNCTION snowflake_fleet.refuse_ddl() RETURNS event_trigger
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  this snowflake_fleet.moving;
  altered name[];
  is_start CONSTANT boolean := tg_event = 'ddl_command_start';
  -- Each costs some milliseconds. Of those that are kept there may be hundreds, of use to nobody: those that are named.
  guarded CONSTANT name[] := ARRAY(SELECT m.schema FROM snowflake_fleet.moving AS m
                                    WHERE m.fingerprint IS NOT NULL AND (m.state <> 'kept' OR strpos(current_query(), m.schema) > 0));
  rewritten name;
BEGIN
  IF snowflake_fleet.holds_move() THEN
    RETURN;
  END IF;
  IF pg_snapshot_xmax(pg_current_snapshot()) <= snowflake_fleet.move_boundary() THEN
    RAISE EXCEPTION USING ERRCODE = 'serialization_failure',
      MESSAGE = 'a shard has begun to move since this transaction took its snapshot',
      DETAIL = format('%s might change its schema, which this transaction cannot see: its snapshot is of before transaction %s.', tg_tag, snowflake_fleet.move_boundary()),
      HINT = 'Run it again in a new transaction.';
  END IF;
  IF cardinality(guarded) = 0 THEN
    RETURN;
  END IF;
  SELECT schemas INTO altered FROM snowflake_fleet.move_note WHERE pid = pg_backend_pid() AND at = statement_timestamp();
  IF is_start AND altered IS NULL THEN
    altered := ARRAY(SELECT m.schema FROM snowflake_fleet.moving AS m WHERE m.schema = ANY (guarded) AND snowflake_fleet.is_altered(m));
    INSERT INTO snowflake_fleet.move_note VALUES (pg_backend_pid(), statement_timestamp(), altered);
  END IF;
  IF tg_event = 'table_rewrite' THEN
    rewritten := (SELECT nspname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace WHERE c.oid = pg_event_trigger_table_rewrite_oid());
  END IF;
  -- One statement: the row and the catalogues are seen as of one moment.
  FOR this IN
    SELECT m.* FROM snowflake_fleet.moving AS m
     WHERE m.schema = ANY (guarded) AND m.fingerprint IS NOT NULL
       AND CASE WHEN tg_event = 'ddl_command_end' THEN snowflake_fleet.is_altered(m)
                     AND NOT (m.side = 'source' AND m.schema = ANY (coalesce(altered, '{}')))
                -- It may give a table other rows, which no change of a row tells of.
                WHEN tg_event = 'table_rewrite' THEN m.state <> 'kept' AND m.schema = rewritten
                -- These commit before they end: what they did could not be taken back.
                ELSE tg_tag IN ('CREATE INDEX', 'DROP INDEX', 'ALTER TABLE') AND current_query() ~* '\mconcurrently\M' AND strpos(current_query(), m.schema) > 0 END
  LOOP
    RAISE EXCEPTION USING ERRCODE = 'object_in_use',
      MESSAGE = CASE WHEN this.state = 'kept' THEN format('schema %I is what was left of shard %s when it moved away', this.schema, this.shard)
                     ELSE format('schema %I moves to another server', this.schema) END,
      DETAIL = format('%s would change it.', tg_tag),
      HINT = CASE WHEN this.state = 'kept' THEN 'To remove it, run snowflake-move-shard --drop-source.'
                  ELSE 'Do it when the move has ended, or end it with snowflake-move-shard --abort.' END;
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.refuse_ddl() IS
  'Internal: refuses DDL that changes a schema which is moving';

-- It takes a superuser. A control database that an ordinary role made has no shards, so nothing moves there; immovable()
-- looks for them.
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
  snowflake_fleet.refuse_ddl(), snowflake_fleet.move_boundary() FROM PUBLIC;
