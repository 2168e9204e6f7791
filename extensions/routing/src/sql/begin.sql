-- Records the objects that are already in the schema snowflake_fleet, so that privileges.sql changes only the
-- privileges of new objects. The recorded objects belong to the extension snowflake_fleet.

DO $$
BEGIN
  PERFORM pg_catalog.set_config('snowflake_fleet.objects', (
    SELECT pg_catalog.array_agg(pg_catalog.concat_ws(' ', catalogue, oid))::pg_catalog.text
      FROM (SELECT 'pg_class' AS catalogue, oid, relnamespace AS schema FROM pg_catalog.pg_class
            UNION ALL SELECT 'pg_proc', oid, pronamespace FROM pg_catalog.pg_proc
            UNION ALL SELECT 'pg_type', oid, typnamespace FROM pg_catalog.pg_type) AS object
     WHERE schema OPERATOR(pg_catalog.=) 'snowflake_fleet'::pg_catalog.regnamespace), true);
END
$$;
