-- audit() shows the regions and shards of a column's ids, and the ids that this database cannot have minted.

CREATE FUNCTION snowflake.audited_column(relation regclass, id_column name) RETURNS name
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  column_name name;
  type text;
BEGIN
  SELECT attname, format_type(CASE WHEN typbasetype <> 0 THEN typbasetype ELSE atttypid END, NULL)
    INTO column_name, type
    FROM snowflake.column_of(relation, id_column) JOIN pg_type AS t ON t.oid = atttypid;
  IF type <> 'bigint' THEN
    RAISE EXCEPTION USING ERRCODE = 'datatype_mismatch',
      MESSAGE = format('column %s.%I cannot contain ids', relation, column_name),
      DETAIL = format('The type of the column is %s. Ids need a plain bigint column.', type),
      HINT = 'Pass the name of the column that contains the ids: id_column => ''...''.';
  END IF;
  RETURN column_name;
END
$$;
COMMENT ON FUNCTION snowflake.audited_column(regclass, name) IS
  'Internal: for audit(): returns the column to read, by default the primary key. Raises an error unless the column '
  'is bigint';

CREATE FUNCTION snowflake.refuse_views_of_others(relation regclass) RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  -- audit() reads a view as the view's owner. Reading a view can run code of the owners of all tables that the view
  -- uses.
  IF EXISTS (WITH RECURSIVE used (oid) AS (
               SELECT relation::oid
               UNION
               SELECT refobjid FROM used JOIN pg_rewrite AS r ON ev_class = used.oid
                 JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
                  AND refclassid = 'pg_class'::regclass
                WHERE ev_type = '1')
             SELECT FROM used JOIN pg_class AS c ON c.oid = used.oid
              WHERE (SELECT relkind FROM pg_class WHERE oid = relation) = 'v'
                AND NOT pg_has_role(relowner, (SELECT relowner FROM pg_class WHERE oid = relation), 'USAGE')) THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('view %s reads tables of other owners', relation),
      DETAIL = 'A query of the view would run code of the table owners with the rights of the view''s owner.',
      HINT = 'Pass the name of a table.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.refuse_views_of_others(regclass) IS
  'Internal: for audit(): raises an error if a view reads tables of other owners';

CREATE FUNCTION snowflake.check_sample(relation regclass, sample double precision) RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  kind CONSTANT "char" := relkind FROM pg_class WHERE oid = relation;
BEGIN
  IF NOT (sample > 0 AND sample <= 100) THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('sample %s is out of range', sample),
      DETAIL = 'The sample is the percentage of the table''s pages to read, and must be more than 0 and at most 100.',
      HINT = 'Omit the sample to read every row.';
  END IF;
  IF sample < 100 AND kind IN ('v', 'f') THEN
    RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
      MESSAGE = format('audit() cannot read a sample of %s', relation),
      DETAIL = format('The relation is a %s, which has no pages.',
                      CASE kind WHEN 'v' THEN 'view' ELSE 'foreign table' END),
      HINT = 'To read every row, omit the argument "sample". To read a sample, pass the name of a table.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.check_sample(regclass, double precision) IS
  'Internal: for audit(): raises an error unless a sample of the relation''s pages can be read';

CREATE FUNCTION snowflake.audit(relation regclass, id_column name DEFAULT NULL, sample double precision DEFAULT 100)
  RETURNS TABLE (region integer, shard integer, ids bigint, oldest timestamptz, newest timestamptz, least_id bigint,
                 greatest_id bigint, minted_by text, finding text)
  LANGUAGE plpgsql STABLE CALLED ON NULL INPUT PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET row_security = off
AS $$
#variable_conflict use_column
DECLARE
  l CONSTANT snowflake.layout := l FROM snowflake.layout AS l;
  last_id CONSTANT bigint := snowflake.last_id_before('infinity');
  column_name name;
BEGIN
  PERFORM snowflake.refuse_null('audit()', relation::text, sample::text);
  column_name := snowflake.audited_column(relation, id_column);
  PERFORM snowflake.refuse_views_of_others(relation), snowflake.check_sample(relation, sample);

  -- The function audit() is STABLE, so it reads the rows of the caller's snapshot. The high-water mark is read after
  -- the snapshot was taken, so every id of the rows is below the high-water mark.
  RETURN QUERY
    SELECT g.region, g.shard, g.ids, oldest.created_at, newest.created_at, g.lowest, g.highest,
           CASE WHEN g.kind = 'early' THEN NULL
                WHEN oldest.minted_by IS DISTINCT FROM newest.minted_by
                  THEN concat('in part ', oldest.minted_by, '; in part ', newest.minted_by)
                ELSE newest.minted_by END,
           CASE g.kind WHEN 'none' THEN 'no id'
                       WHEN 'early' THEN 'plain numbers, or ids of the epoch''s first hour'
                       ELSE newest.contradiction END
      FROM snowflake.audited(relation, column_name, sample, snowflake.last_id_before(l.epoch + interval '1 hour'),
                             coalesce((SELECT snowflake.last_id_before(h.mark) FROM snowflake.health() AS h),
                                      last_id)) AS g
      LEFT JOIN LATERAL (SELECT e.* FROM snowflake.explain_id(g.lowest) AS e) AS oldest ON true
      LEFT JOIN LATERAL (SELECT e.* FROM snowflake.explain_id(g.highest) AS e) AS newest ON true
     ORDER BY 9, 1, 2, 6;
END
$$;
COMMENT ON FUNCTION snowflake.audit(regclass, name, double precision) IS
  'Counts the ids of a bigint column, by default of the primary key. Each row of the result shows a region, a shard, '
  'and the number of ids with this region and shard. Other columns show the oldest and the newest of these ids, and '
  'the server that mints ids with this region and shard. If explain_id() finds that the newest id cannot be right, '
  'the column "contradiction" shows why. The result has separate rows for ids ahead of the high-water mark, for '
  'small numbers, for other numbers that are not ids, and for NULL. The call reads every row, or a percentage of the '
  'table''s pages, and changes nothing';
