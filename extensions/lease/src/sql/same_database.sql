-- Detects that the lease server's database may lack the newest leases. The newest leases may be missing after a
-- restore, a promotion, a copy of the database, or manual changes of rows.

-- The function whereabouts() reads the timeline from the WAL, because the control file still contains the old timeline
-- for a while after a promotion. The function whereabouts() is SECURITY DEFINER, because each role must get an equal
-- result.
CREATE FUNCTION snowflake_fleet.whereabouts(OUT system_identifier bigint, OUT timeline integer,
                                            OUT database oid, OUT directory timestamptz)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF has_function_privilege('pg_catalog.pg_control_system()', 'EXECUTE') THEN
    SELECT s.system_identifier INTO system_identifier FROM pg_catalog.pg_control_system() AS s;
  ELSE
    system_identifier := 0;  -- a managed service
  END IF;
  IF has_function_privilege('pg_catalog.pg_stat_file(text)', 'EXECUTE') THEN
    SELECT s.change INTO directory FROM pg_catalog.pg_stat_file('PG_VERSION') AS s;
  END IF;
  timeline := ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer;
  SELECT d.oid INTO database FROM pg_catalog.pg_database AS d WHERE d.datname = current_database();
END
$$;
COMMENT ON FUNCTION snowflake_fleet.whereabouts() IS
  'Internal: returns properties of the database that change when this database is recovered, promoted or copied. The '
  'property `directory` is the change time (ctime) of the file PG_VERSION, which also changes with the metadata of '
  'the file. If the owner of the extension may not read this file, `directory` is null. Restoring a disk from a '
  'snapshot does not change the properties that whereabouts() returns';

-- The signature of a row includes the id of the transaction that wrote the row. If COPY or replication writes the row
-- again, the transaction id changes, and the signature no longer matches. The signature of a row also includes the
-- contents of the row, to detect a later manual change by the transaction that signed the row.
CREATE FUNCTION snowflake_fleet.signature_of(writer xid, contents jsonb) RETURNS bigint
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$
  SELECT pg_catalog.hashtextextended(
    writer::text OPERATOR(pg_catalog.||) (contents OPERATOR(pg_catalog.-) 'signature'::text)::text, 0)
$$;
COMMENT ON FUNCTION snowflake_fleet.signature_of(xid, jsonb) IS
  'Internal: returns the signature of a row, which is a hash of the xmin and the columns of the row';

CREATE FUNCTION snowflake_fleet.foreign_rows() RETURNS text
  LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
BEGIN
  RETURN CASE
    WHEN EXISTS (SELECT FROM snowflake_fleet.fleet AS f
                  WHERE f.signature <> snowflake_fleet.signature_of(f.xmin, to_jsonb(f))) THEN 'fleet'
    WHEN EXISTS (SELECT FROM snowflake_fleet.server AS s
                  WHERE s.signature <> snowflake_fleet.signature_of(s.xmin, to_jsonb(s))) THEN 'server'
    WHEN EXISTS (SELECT FROM snowflake_fleet.region AS r
                  WHERE r.signature <> snowflake_fleet.signature_of(r.xmin, to_jsonb(r)))
      OR (SELECT count(*) FROM snowflake_fleet.region) <> (SELECT f.region_rows FROM snowflake_fleet.fleet AS f)
         THEN 'region'
    END;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.foreign_rows() IS
  'Internal: returns a table that contains rows which no function of this schema wrote, or from which rows were '
  'deleted. Returns null if all rows have a valid signature';

CREATE FUNCTION snowflake_fleet.sign_rows() RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
DECLARE
  own xid;
BEGIN
  -- Reads the transaction id from xmin of an updated row. In a subtransaction, xmin is the id of the subtransaction,
  -- which pg_current_xact_id() does not return.
  UPDATE snowflake_fleet.fleet AS f SET region_rows = (SELECT count(*) FROM snowflake_fleet.region);
  own := (SELECT f.xmin FROM snowflake_fleet.fleet AS f);
  UPDATE snowflake_fleet.fleet AS f SET signature = snowflake_fleet.signature_of(own, to_jsonb(f));
  UPDATE snowflake_fleet.server AS s SET signature = snowflake_fleet.signature_of(own, to_jsonb(s)) WHERE s.xmin = own;
  UPDATE snowflake_fleet.region AS r SET signature = snowflake_fleet.signature_of(own, to_jsonb(r)) WHERE r.xmin = own;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.sign_rows() IS
  'Internal: stores a hash (signature) for the rows that this transaction has written. Each function that writes rows '
  'calls sign_rows() at its end';

CREATE FUNCTION snowflake_fleet.has_moved(OUT moved boolean, OUT detail text)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  own snowflake_fleet.fleet;
  place record;
  foreign_rows CONSTANT text := snowflake_fleet.foreign_rows();
BEGIN
  SELECT f.* INTO STRICT own FROM snowflake_fleet.fleet AS f;
  SELECT w.* INTO STRICT place FROM snowflake_fleet.whereabouts() AS w;
  detail := CASE
    WHEN (place.system_identifier, place.timeline, place.database)
      IS DISTINCT FROM (own.system_identifier, own.timeline, own.database)
      THEN format('The database was restored, promoted or copied. It has timeline %s of system %s, database %s. '
                  'Before, it had timeline %s of system %s, database %s.',
                  place.timeline, place.system_identifier, place.database,
                  own.timeline, own.system_identifier, own.database)
    WHEN foreign_rows IS NOT NULL
      THEN format('Rows of table snowflake_fleet.%s were changed by a restore, COPY, replication or a manual '
                  'statement, and not by the functions of this schema.', foreign_rows)
    WHEN place.directory IS DISTINCT FROM own.directory
      THEN format('The files of the data directory were copied, or chmod, chown, a hard link or a new label changed '
                  'their metadata. The change time of the file PG_VERSION is %s, and was %s before.',
                  coalesce(place.directory::text, '?'), coalesce(own.directory::text, '?'))
    END;
  moved := detail IS NOT NULL;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.has_moved() IS
  'Internal: returns whether the newest leases may be missing in this database, and the reason';

CREATE FUNCTION snowflake_fleet.require_settled(although_halted boolean DEFAULT false) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  place CONSTANT record := snowflake_fleet.has_moved();
  halted CONSTANT boolean := (SELECT f.halted FROM snowflake_fleet.fleet AS f);
BEGIN
  IF place.moved OR (halted AND NOT although_halted) THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'this database may lack the newest leases',
      DETAIL = coalesce(place.detail, 'A server has a lease that is newer than the leases in this database.'),
      HINT = 'Read the view snowflake_fleet.health in the lease server, and follow its advice.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.require_settled(boolean) IS
  'Internal: raises an error (55000) if leases may be lost and no operator has called confirm_data_loss() or '
  'confirm_no_data_loss()';

CREATE FUNCTION snowflake_fleet.settle_here() RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE snowflake_fleet.fleet AS f
     SET system_identifier = w.system_identifier, timeline = w.timeline, database = w.database, directory = w.directory
    FROM snowflake_fleet.whereabouts() AS w;
  UPDATE snowflake_fleet.refusal AS f SET since = NULL WHERE f.cause = 'halted';
  UPDATE snowflake_fleet.region AS r SET until_ms = r.until_ms;
  UPDATE snowflake_fleet.server AS s SET last_request = s.last_request;
  PERFORM snowflake_fleet.sign_rows();
END
$$;
COMMENT ON FUNCTION snowflake_fleet.settle_here() IS
  'Internal: records that this copy of the database is the one that grants leases. Records the result of '
  'whereabouts(), and writes the signatures of all rows of the lease server''s tables';
