-- Inserts into a table that grows, a chunk at a time; the keys in turn, so that they share the weather.

CREATE PROCEDURE bench.grow(chunks integer, n integer) LANGUAGE plpgsql AS $$
DECLARE
  key bench.key;
  started timestamptz;
  cpu bigint;
BEGIN
  FOR key IN SELECT * FROM bench.key WHERE name IN ('next_id', 'nextval cache 1', 'UUID v4', 'UUID v7') LOOP
    EXECUTE format('CREATE TABLE %I (id %s PRIMARY KEY DEFAULT %s, v integer)', 'grow ' || key.name, key.type,
                   bench.with_shard(key.made_by));
  END LOOP;
  COMMIT;
  FOR chunk IN 1 .. chunks LOOP
    FOR key IN SELECT * FROM bench.key WHERE name IN ('next_id', 'nextval cache 1', 'UUID v4', 'UUID v7') LOOP
      started := clock_timestamp();
      cpu := bench.cpu_ns();
      EXECUTE format('INSERT INTO %I (v) SELECT i FROM generate_series(1, %s) AS i', 'grow ' || key.name, n);
      COMMIT;
      INSERT INTO bench.sample VALUES
        (format('grow: %s', key.name), 'CPU ns a row', chunk, (bench.cpu_ns() - cpu)::float8 / n),
        (format('grow: %s', key.name), 'rows/s', chunk,
         n / extract(epoch FROM clock_timestamp() - started)::float8);
    END LOOP;
  END LOOP;
END
$$;
