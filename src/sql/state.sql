-- If the schema already exists, CREATE EXTENSION fails, because another role could have created overloads of the
-- extension's functions in the schema. For example, pgEdge's extension snowflake leaves its schema behind when it is
-- dropped.
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_catalog.pg_namespace AS n
              WHERE nspname OPERATOR(pg_catalog.=) 'snowflake'
                AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend
                                 WHERE classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_namespace'::pg_catalog.regclass
                                   AND objid OPERATOR(pg_catalog.=) n.oid AND deptype OPERATOR(pg_catalog.=) 'e')) THEN
    RAISE EXCEPTION USING
      ERRCODE = 'duplicate_schema',
      MESSAGE = 'schema "snowflake" already exists',
      DETAIL = 'CREATE EXTENSION creates the schema itself. '
               'When pgEdge''s extension of the same name is dropped, it leaves a schema "snowflake" behind.',
      HINT = 'Drop or rename the schema.';
  END IF;
END
$$;

CREATE SCHEMA IF NOT EXISTS snowflake;
COMMENT ON SCHEMA snowflake IS 'Functions that mint, decode and route time-sortable 64-bit ids';

-- The extension stores its state in five sequences. The value of a sequence is WAL-logged, replicated, contained in
-- base backups, preserved by pg_upgrade, and read without a snapshot. PUBLIC may read the sequences, so that pg_dump
-- works for a role that owns only tables. The value of each sequence stays below half of MAXVALUE, because monitoring
-- tools report sequences that are almost used up.

CREATE SEQUENCE snowflake.high_water AS bigint MINVALUE 0 START 0;
COMMENT ON SEQUENCE snowflake.high_water IS
  'The high-water mark, a time in milliseconds since 1970. No id with the time of the mark or a later time has been '
  'issued';

CREATE SEQUENCE snowflake.seal AS bigint MINVALUE 0 START 0;
COMMENT ON SEQUENCE snowflake.seal IS
  'The layout, tick and epoch of the ids in this database, encoded as a number. If a dump with another layout was '
  'restored, this number is the layout of the dump';

CREATE SEQUENCE snowflake.seal_local AS bigint MINVALUE 0 START 0;
COMMENT ON SEQUENCE snowflake.seal_local IS
  'The layout, tick and epoch at CREATE EXTENSION, encoded as a number. A restored dump can replace this number '
  'while "is_called" is false. This means that no id was minted or decoded and no dump was restored';

CREATE SEQUENCE snowflake.fleet AS bigint MINVALUE 0 START 0;
COMMENT ON SEQUENCE snowflake.fleet IS
  'The number of the fleet (the servers of one lease server) whose leases cover the ids of this database. 0 means '
  'that the ids need no leases. 1152921504606846976 means that the number is not known yet: the first id replaces it';

CREATE SEQUENCE snowflake.origin_fingerprint AS bigint MINVALUE 0 START 0;
COMMENT ON SEQUENCE snowflake.origin_fingerprint IS
  'A fingerprint of the server on which this database last minted ids. The fingerprint consists of bits of hashes of '
  'the system identifier, the machine, the disk and the files. accept_clone() replaces the fingerprint';

CREATE FUNCTION snowflake.initial_state(OUT seal bigint, OUT high_water bigint, OUT fleet bigint,
                                        OUT origin_fingerprint bigint)
  AS 'MODULE_PATHNAME', 'snowflake_initial_state'
  LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION snowflake.check_sequence_page(sequence regclass, value bigint) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_check_sequence_page'
  LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

-- The library reads and writes the pages of sequences directly, but their format is internal to PostgreSQL. The
-- following block tests that SQL and the library read the same values from a sequence.
DO $$
DECLARE
  before pg_catalog.int8;
  after record;
  next pg_catalog.int8;
  kept pg_catalog.int8;
BEGIN
  PERFORM pg_catalog.setval('snowflake.high_water', 20);
  before := snowflake.check_sequence_page('snowflake.high_water', 30);
  SELECT last_value, log_cnt, is_called INTO after FROM snowflake.high_water;
  next := pg_catalog.nextval('snowflake.high_water');
  PERFORM pg_catalog.setval('snowflake.high_water', 10);
  kept := snowflake.check_sequence_page('snowflake.high_water', 0);
  IF (before, after.last_value, after.log_cnt, after.is_called, next, kept)
       IS DISTINCT FROM (20::pg_catalog.int8, 30::pg_catalog.int8, 0::pg_catalog.int8, true, 31::pg_catalog.int8,
                         30::pg_catalog.int8) THEN
    RAISE EXCEPTION USING
      ERRCODE = 'feature_not_supported',
      MESSAGE = 'this version of PostgreSQL stores sequences in an unsupported way',
      DETAIL = pg_catalog.format(
        'A test of sequence snowflake.high_water must read 20, 30, 0, t, 31 and 30. It read %s, %s, %s, %s, %s and %s.',
                                 before, after.last_value, after.log_cnt, after.is_called, next, kept),
      HINT = 'Install a version of snowflake that was tested with this version of PostgreSQL.';
  END IF;
END
$$;

SELECT pg_catalog.setval('snowflake.seal', s.seal),
       pg_catalog.setval('snowflake.seal_local', s.seal),
       pg_catalog.setval('snowflake.fleet', s.fleet, s.fleet OPERATOR(pg_catalog.<>) 0),
       pg_catalog.setval('snowflake.origin_fingerprint', s.origin_fingerprint),
       snowflake.check_sequence_page('snowflake.high_water', s.high_water)
  FROM snowflake.initial_state() AS s;

DROP FUNCTION snowflake.initial_state();
DROP FUNCTION snowflake.check_sequence_page(regclass, bigint);

-- Records which ids backfill() and late_id() of the extension snowflake_migrate have given to old rows.
CREATE TABLE snowflake.backfills (
  region integer NOT NULL,
  shard integer NOT NULL,
  relation text,               -- relation, id_column and table_oid are null in rows that late_id() inserts
  id_column name,
  table_oid oid,               -- a new table of the same name has another oid, and gets another region
  last_position bigint NOT NULL DEFAULT -1,
  until timestamptz NOT NULL DEFAULT '-infinity',
  done_until timestamptz,
  rows bigint NOT NULL DEFAULT 0,
  began timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  finished timestamptz,
  PRIMARY KEY (region, shard));
COMMENT ON TABLE snowflake.backfills IS
  'Each row reserves a region and shard for the ids that backfill() or late_id() mints for one table. All these ids '
  'have times before "until". Other columns show how far backfill() has come, and when it ended';
CREATE TABLE snowflake.late_ids (id bigint PRIMARY KEY);
COMMENT ON TABLE snowflake.late_ids IS 'The ids that the function late_id() has returned';
SELECT pg_catalog.pg_extension_config_dump('snowflake.backfills', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake.late_ids', '');

-- A dump contains the high-water mark as the value of a sequence. A dump contains the layout as a row of the table
-- dumped_seal. Every role may insert into the table dumped_seal. If the database has not yet minted or decoded an id,
-- it adopts the layout of the dumped_seal row that a restore inserts. If the database has already minted or decoded an
-- id, restoring a dumped_seal row with another layout disables minting. The trigger of dumped_seal also fires for
-- replicated rows, with any value of session_replication_role. The option --disable-triggers of pg_restore disables the
-- trigger of dumped_seal, but not the CHECK constraint.
CREATE FUNCTION snowflake.is_seal(seal bigint) RETURNS boolean
  AS 'MODULE_PATHNAME', 'snowflake_is_seal'
  LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.is_seal(bigint) IS 'Internal: checks rows of the table snowflake.dumped_seal';

CREATE TABLE snowflake.dumped_seal (seal bigint PRIMARY KEY CONSTRAINT same_seal CHECK (snowflake.is_seal(seal)));
COMMENT ON TABLE snowflake.dumped_seal IS
  'The id layout of this database as a number, for dumps. An inserted number is compared with the layout of this '
  'database, and stored only if the database adopts that layout';
INSERT INTO snowflake.dumped_seal SELECT last_value FROM snowflake.seal_local;

CREATE FUNCTION snowflake.present_seal() RETURNS trigger
  AS 'MODULE_PATHNAME', 'snowflake_present_seal'
  LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.present_seal() IS 'Internal: checks rows of the table snowflake.dumped_seal';

CREATE TRIGGER present_seal BEFORE INSERT ON snowflake.dumped_seal
  FOR EACH ROW EXECUTE FUNCTION snowflake.present_seal();
CREATE TRIGGER keep_row BEFORE UPDATE OR DELETE ON snowflake.dumped_seal
  FOR EACH ROW EXECUTE FUNCTION snowflake.present_seal();
CREATE TRIGGER keep_rows BEFORE TRUNCATE ON snowflake.dumped_seal
  FOR EACH STATEMENT EXECUTE FUNCTION snowflake.present_seal();
ALTER TABLE snowflake.dumped_seal ENABLE ALWAYS TRIGGER present_seal,
  ENABLE ALWAYS TRIGGER keep_row, ENABLE ALWAYS TRIGGER keep_rows;

SELECT pg_catalog.pg_extension_config_dump('snowflake.high_water', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake.dumped_seal', '');

-- If a row of backfills or late_ids were deleted, ids that old rows already have could be given again. The trigger
-- keep_origin raises an error if the owner of the database or a member of pg_write_all_data deletes a row of backfills
-- or late_ids. Only the role that owns the tables can delete rows of backfills and late_ids.
CREATE FUNCTION snowflake.keep_origin() RETURNS trigger
  LANGUAGE plpgsql PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF TG_RELID = 'snowflake.backfills'::regclass THEN
    IF TG_OP = 'UPDATE' THEN
      IF (NEW.region, NEW.shard) = (OLD.region, OLD.shard) AND NEW.last_position >= OLD.last_position
         AND NEW.until >= OLD.until THEN
        RETURN NEW;
      END IF;
    ELSIF OLD.last_position < 0 THEN
      RETURN OLD;
    END IF;
  END IF;
  IF NOT pg_has_role(current_user, (SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'USAGE') THEN
    RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
      MESSAGE = format('cannot change or delete a row of snowflake.%I', TG_TABLE_NAME),
      DETAIL = format('The row %s describes ids that were minted. '
                      'Without this row, the same ids could be minted again.', OLD),
      HINT = 'Do not change the row.';
  END IF;
  RETURN CASE TG_OP WHEN 'UPDATE' THEN NEW ELSE OLD END;
END
$$;
COMMENT ON FUNCTION snowflake.keep_origin() IS 'Internal: protects rows of the tables snowflake.backfills and '
                                               'snowflake.late_ids';
CREATE TRIGGER keep_origin BEFORE UPDATE OR DELETE ON snowflake.backfills
  FOR EACH ROW EXECUTE FUNCTION snowflake.keep_origin();
ALTER TABLE snowflake.backfills ENABLE ALWAYS TRIGGER keep_origin;
CREATE TRIGGER keep_origin BEFORE UPDATE OR DELETE ON snowflake.late_ids
  FOR EACH ROW EXECUTE FUNCTION snowflake.keep_origin();
ALTER TABLE snowflake.late_ids ENABLE ALWAYS TRIGGER keep_origin;
