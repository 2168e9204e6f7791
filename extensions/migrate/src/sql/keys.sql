-- Finds the columns that hold ids: keys, and columns that refer to keys.

CREATE FUNCTION snowflake.refuse(state text, message text, detail text, hint text) RETURNS void
  AS 'MODULE_PATHNAME', 'snowflake_refuse'
  LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.refuse IS
  'Internal: for procedures: raises an error that has no CONTEXT lines. If the argument "message" is null, does '
  'nothing';

CREATE TYPE snowflake.key_column AS (relation regclass, attribute name);
COMMENT ON TYPE snowflake.key_column IS
  'Internal: for adopt(): a column that contains ids. For an inherited column, the value names the topmost table';

-- If a column has a domain as its type, wide_type() uses the base type of the domain.
CREATE FUNCTION snowflake.wide_type(type oid) RETURNS text
  LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
  WITH RECURSIVE types (type, base) AS (
    SELECT oid, typbasetype FROM pg_type WHERE oid = wide_type.type
    UNION ALL
    SELECT t.oid, typbasetype FROM types JOIN pg_type AS t ON t.oid = base)
  SELECT CASE WHEN types.type IN ('smallint'::regtype, 'integer'::regtype) THEN 'bigint'
              WHEN types.type IN ('smallint[]'::regtype, 'integer[]'::regtype) THEN 'bigint[]' END
    FROM types WHERE base = 0
$$;
COMMENT ON FUNCTION snowflake.wide_type(oid) IS
  'Internal: for adopt(): returns bigint or bigint[] for an integer type that is too narrow for ids, and null for '
  'other types';

CREATE FUNCTION snowflake.type_for_ids(type oid, typmod integer) RETURNS text
  LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
  RETURN coalesce(snowflake.wide_type(type),
                  CASE WHEN type IN ('real'::regtype, 'double precision'::regtype) THEN 'bigint'
                       WHEN type = 'numeric'::regtype AND typmod > 0
                            AND ((typmod - 4) >> 16) - ((typmod - 4) & 2047) < 19 THEN 'numeric(19)' END);
COMMENT ON FUNCTION snowflake.type_for_ids IS
  'Internal: for adopt(): if a numeric type cannot store all ids exactly, returns a type that can; otherwise returns '
  'null';

CREATE FUNCTION snowflake.root_of(key snowflake.key_column) RETURNS regclass
  LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
  WITH RECURSIVE up (relation, level) AS (
    SELECT key.relation::oid, 0
    UNION ALL
    SELECT inhparent, level + 1 FROM up JOIN pg_inherits ON inhrelid = relation
     WHERE EXISTS (SELECT FROM pg_attribute WHERE attrelid = inhparent AND attname = key.attribute))
  SELECT relation FROM up ORDER BY level DESC, relation LIMIT 1
$$;
COMMENT ON FUNCTION snowflake.root_of IS
  'Internal: for adopt(): returns the topmost table from which a table inherits a column, or the table itself';

CREATE FUNCTION snowflake.with_children(relation regclass) RETURNS SETOF regclass
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 5 SET search_path = pg_catalog, pg_temp
AS $$
  WITH RECURSIVE down (relation) AS (
    SELECT with_children.relation UNION SELECT inhrelid FROM down JOIN pg_inherits ON inhparent = down.relation)
  TABLE down
$$;
COMMENT ON FUNCTION snowflake.with_children IS
  'Internal: for adopt(): returns a table, its partitions and the tables that inherit from it, at any depth';

CREATE FUNCTION snowflake.attributes_of(columns snowflake.key_column[], OUT relation regclass, OUT attname name,
                                        OUT attnum smallint, OUT atttypid oid) RETURNS SETOF record
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 10 SET search_path = pg_catalog, pg_temp
AS $$
  SELECT DISTINCT t.relation, a.attname, a.attnum, a.atttypid
    FROM unnest(columns) AS k CROSS JOIN LATERAL snowflake.with_children(k.relation) AS t (relation)
    JOIN pg_attribute AS a ON a.attrelid = t.relation AND a.attname = k.attribute
$$;
COMMENT ON FUNCTION snowflake.attributes_of(snowflake.key_column[]) IS
  'Internal: for adopt(): returns the attribute numbers and types of columns in the given tables and in their child '
  'tables';

CREATE FUNCTION snowflake.attribute_of(key snowflake.key_column) RETURNS pg_attribute
  LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
  SELECT a FROM pg_attribute AS a
   WHERE attrelid = key.relation AND attname = key.attribute AND attnum > 0 AND NOT attisdropped
$$;
COMMENT ON FUNCTION snowflake.attribute_of IS 'Internal: for adopt(): returns the row of a column in pg_attribute';

CREATE FUNCTION snowflake.column_of(relation regclass, wanted name) RETURNS pg_attribute
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  class CONSTANT pg_class := c FROM pg_class AS c WHERE oid = relation;
  found pg_attribute;
BEGIN
  PERFORM snowflake.refuse('42P01', CASE WHEN class.oid IS NULL THEN format('relation %s does not exist', relation) END,
            'No relation has this OID.', 'Pass the name of a table.'),
          snowflake.refuse('42809', CASE WHEN class.relkind NOT IN ('r', 'p', 'f', 'v', 'm')
                                         THEN format('relation %s is not a table or view', relation) END,
            format('The relation is of kind %s.', (pg_identify_object('pg_class'::regclass, class.oid, 0)).type),
            'Pass the name of a table.');
  found := CASE WHEN wanted IS NOT NULL THEN snowflake.attribute_of((relation, wanted))
                ELSE (SELECT a FROM pg_index JOIN pg_attribute AS a ON attrelid = indrelid AND attnum = indkey[0]
                       WHERE indrelid = relation AND indisprimary AND indnkeyatts = 1) END;
  IF found.attrelid IS NULL THEN
    PERFORM snowflake.refuse('42703', CASE WHEN wanted IS NULL
      THEN format('table %s has no primary key with only one column', relation)
      ELSE format('table %s has no column "%s"', relation, wanted) END,
      (SELECT format('The columns of the table are %s.', string_agg(quote_ident(attname), ', ' ORDER BY attnum))
         FROM pg_attribute WHERE attrelid = relation AND attnum > 0 AND NOT attisdropped),
      'Pass the name of the column that contains the ids: id_column => ''...''.');
  END IF;
  RETURN found;
END
$$;
COMMENT ON FUNCTION snowflake.column_of(regclass, name) IS
  'Internal: for procedures: returns a column by its name, by default the primary key. Raises an error if the column '
  'does not exist';

-- Returns the keys, then the columns that refer to the keys by foreign keys, at any depth.
CREATE FUNCTION snowflake.referring_columns(keys snowflake.key_column[]) RETURNS SETOF snowflake.key_column
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 5 SET search_path = pg_catalog, pg_temp
AS $$
  WITH RECURSIVE found (relation, attribute) AS (
    SELECT snowflake.root_of(k), k.attribute FROM unnest(keys) AS k
    UNION
    SELECT snowflake.root_of((conrelid, r.attname)), r.attname
      FROM found AS f CROSS JOIN snowflake.with_children(f.relation) AS child
      JOIN pg_constraint ON contype = 'f' AND confrelid = child
     CROSS JOIN unnest(conkey, confkey) AS pair (referring, referenced)
      JOIN pg_attribute AS t ON t.attrelid = confrelid AND t.attnum = pair.referenced
      JOIN pg_attribute AS r ON r.attrelid = conrelid AND r.attnum = pair.referring
     WHERE t.attname = f.attribute)
  SELECT f.relation, f.attribute FROM found AS f
   ORDER BY (f.relation, f.attribute)::snowflake.key_column <> ALL (keys), f.relation, f.attribute
$$;
COMMENT ON FUNCTION snowflake.referring_columns IS
  'Internal: for adopt(): returns the key columns, and the columns that refer to the key columns by foreign keys';

-- The relations of the application, without the relations of the system and of extensions.
CREATE FUNCTION snowflake.is_of_application(class oid, object oid, schema oid) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
  RETURN schema::regnamespace::text !~ '^("?pg_|information_schema$|snowflake(_fleet|_routing)?$)'
         AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = class AND objid = object AND deptype = 'e');
COMMENT ON FUNCTION snowflake.is_of_application IS
  'Internal: for adopt(): returns whether an object belongs to no extension and no system schema';

CREATE FUNCTION snowflake.names_id(name text) RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
  RETURN name ~* '(^|_)u?ids?$' OR name ~ '[a-z0-9](Id|ID)s?$';
COMMENT ON FUNCTION snowflake.names_id(text) IS
  'Internal: for adopt(): returns whether a name is like photo_id, photo_ids or photoId';

-- Finds columns with ids that have no foreign key: polymorphic references, arrays, and copies in audit and history
-- tables.
CREATE FUNCTION snowflake.named_columns(keys snowflake.key_column[]) RETURNS SETOF snowflake.key_column
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 10 SET search_path = pg_catalog, pg_temp
AS $$
  SELECT c.oid::regclass, a.attname
    FROM pg_class AS c JOIN pg_attribute AS a ON attrelid = c.oid
   WHERE relkind IN ('r', 'p') AND relpersistence <> 't' AND attnum > 0 AND attinhcount = 0 AND NOT attisdropped
     AND snowflake.type_for_ids(atttypid, atttypmod) IS NOT NULL AND attgenerated = '' AND attidentity = ''
     AND (snowflake.names_id(attname) OR EXISTS (SELECT FROM unnest(keys) AS k WHERE k.attribute = attname)
          OR EXISTS (SELECT FROM pg_attribute AS type
                      WHERE type.attrelid = c.oid AND type.attname IN (a.attname || '_type', a.attname || 'Type')))
     AND snowflake.is_of_application('pg_class'::regclass, c.oid, relnamespace)
     AND NOT EXISTS (SELECT FROM pg_constraint
                      WHERE contype = 'f' AND conrelid IN (SELECT snowflake.with_children(c.oid))
                        AND (snowflake.attribute_of((conrelid, attname))).attnum = ANY (conkey))
     AND NOT EXISTS (SELECT FROM pg_index
       WHERE indrelid = c.oid AND indisprimary AND indnkeyatts = 1 AND indkey[0] = attnum AND lower(attname) = 'id')
     AND NOT EXISTS (SELECT snowflake.sequences_of((c.oid, attname)))
     AND (c.oid, attname) NOT IN (SELECT r.relation, r.attribute FROM snowflake.referring_columns(keys) AS r)
   ORDER BY c.oid::regclass::text, attnum
$$;
COMMENT ON FUNCTION snowflake.named_columns(snowflake.key_column[]) IS
  'Internal: for adopt(): columns that are too narrow for ids and whose names look like ids, without a foreign key';
