DO $check$
BEGIN
  IF pg_catalog.current_setting('server_version_num')::pg_catalog.int4 OPERATOR(pg_catalog.<) 150000 THEN
    RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
      MESSAGE = 'the SQL engine needs PostgreSQL 15 or later',
      DETAIL = 'It counts in unlogged sequences, which earlier versions do not have.',
      HINT = 'Upgrade the server.';
  END IF;
END
$check$;

CREATE SCHEMA snowflake;
COMMENT ON SCHEMA snowflake IS '64-bit time-sortable ids: mint, decode (SQL engine)';
CREATE SCHEMA snowflake_sql;
COMMENT ON SCHEMA snowflake_sql IS 'State and internal functions of the SQL engine behind schema snowflake';

-- State. A counter is at tick << {{TICK_SHIFT}} | n: tick is the open tick, n = how many of its {{PER_TICK}} numbers are drawn.
-- Greater n is the overflow of the tick: those draws are thrown away.
{{CREATE_COUNTERS}}
CREATE UNLOGGED SEQUENCE snowflake_sql.published AS bigint MINVALUE 0 START 0;
COMMENT ON SEQUENCE snowflake_sql.published IS 'The part of snowflake.high_water that is flushed: ticks before it may be opened';
CREATE SEQUENCE snowflake.high_water AS bigint MINVALUE 0 START 0;
COMMENT ON SEQUENCE snowflake.high_water IS
  'Durable high-water mark, in milliseconds since 1970: no id of this time or later has been issued. The ids have layout {{LAYOUT}}';
CREATE TABLE snowflake_sql.gate ();
COMMENT ON TABLE snowflake_sql.gate IS 'Has no rows: its lock is held while a tick is opened';

-- A dump carries this row in addition to the mark. The constraint refuses that of another layout.
CREATE TABLE snowflake.dumped_seal (seal bigint NOT NULL CONSTRAINT same_seal CHECK (seal = {{SEAL}}));
COMMENT ON TABLE snowflake.dumped_seal IS 'The seal as a dump carries it: layout, tick and epoch, packed';
INSERT INTO snowflake.dumped_seal VALUES ({{SEAL}});

SELECT pg_catalog.setval('snowflake.high_water',
  greatest({{EPOCH_MS}}, (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000)::bigint));
