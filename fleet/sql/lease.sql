-- A conversation: acquire, renew, give back; what is refused, and what the operator sees and does.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE EXTENSION snowflake_fleet;
SELECT snowflake_fleet.enroll('regress_fleet_a'), snowflake_fleet.enroll('regress_fleet_b');
CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql
  AS $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;
-- time 41, region 1, shard 12, sequence 10, tick 1 ms, since 2025
SELECT (1735689600000 << 23) | (41 << 17) | (1 << 12) | (12 << 7) | (10 << 2) AS seal \gset
SELECT id AS fleet FROM snowflake_fleet.fleet \gset

-- pg_regress starts its server with fsync off
SET SESSION AUTHORIZATION regress_fleet_a;
SELECT snowflake_fleet.acquire(0, 1, 0, 0, 1, 0, now_ms(), 10100, :seal);
\echo SQLSTATE :SQLSTATE
RESET SESSION AUTHORIZATION;
CREATE OR REPLACE FUNCTION snowflake_fleet.require_durability() RETURNS void LANGUAGE sql AS '';

-- Granted, asked again, renewed
SET SESSION AUTHORIZATION regress_fleet_a;
SELECT *, clock_ms BETWEEN now_ms() - 10000 AND now_ms() AS clock_ok, until_ms BETWEEN now_ms() + 5000 AND now_ms() + 10100 AS until_ok
  FROM snowflake_fleet.acquire(0, 11, 0, 0, 1, 0, now_ms(), 10100, :seal) \gset
SELECT :'status' AS status, :fleet = :fleet AS fleet, :number AS number, :region AS region, :grant_number AS grant_number,
       :floor_ms AS floor_ms, :'clock_ok' AS clock_ok, :'until_ok' AS until_ok;
SELECT status, region, grant_number FROM snowflake_fleet.acquire(:fleet, 11, :term, 1, 2, 1, now_ms(), 10100, :seal);
SELECT status, region, grant_number, until_ms > :until_ms + 40000 AS longer
  FROM snowflake_fleet.renew(:fleet, 11, :term, 2, 3, 2, now_ms(), 60000, :seal, 0);
SELECT status, until_ms > :until_ms + 40000 AS not_shorter
  FROM snowflake_fleet.renew(:fleet, 11, :term, 3, 4, 3, now_ms() - 5000, 1000, :seal, 0);
-- The second region, then none
SELECT status, region FROM snowflake_fleet.acquire(0, 12, 0, 0, 1, 0, now_ms(), 10100, :seal);
RESET SESSION AUTHORIZATION;
SET SESSION AUTHORIZATION regress_fleet_b;
SELECT status, region, until_ms > now_ms() AS later,
       regexp_replace(detail, '20[0-9-]+ [0-9:+]+', 'TIME', 'g') AS detail
  FROM snowflake_fleet.acquire(0, 21, 0, 0, 1, 0, now_ms(), 10100, :seal);
-- One server for another's incarnation
SELECT status, detail FROM snowflake_fleet.renew(:fleet, 11, :term, 3, 4, 3, now_ms(), 10100, :seal, 0);
SELECT status FROM snowflake_fleet.give_back(:fleet, 11, :term, 3, :seal, 0, 2, now_ms());
RESET SESSION AUTHORIZATION;

-- What the operator sees
SELECT region, holder, until > clock_timestamp() AS until, since < clock_timestamp() AS since, heard IS NOT NULL AS heard,
       clock_offset BETWEEN '-1 min' AND '1 s' AS clock_offset, free FROM snowflake_fleet.regions ORDER BY region;
SELECT server, heard IS NOT NULL AS heard, regions FROM snowflake_fleet.servers ORDER BY server;
SET ROLE pg_monitor;
SELECT region, holder FROM snowflake_fleet.regions ORDER BY region;
RESET ROLE;

-- Given back: only the present grant, at the highest limit, within the lease
SET SESSION AUTHORIZATION regress_fleet_a;
SELECT status FROM snowflake_fleet.give_back(:fleet, 11, :term, 3, :seal, 0, 1, now_ms());
SELECT now_ms() AS highest \gset
SELECT status FROM snowflake_fleet.give_back(:fleet, 11, :term, 3, :seal, 0, 2, :highest);
SELECT status FROM snowflake_fleet.give_back(:fleet, 11, :term, 3, :seal, 0, 2, :highest);
-- The next incarnation begins there
SELECT status, region, floor_ms = :highest AS floor FROM snowflake_fleet.acquire(0, 13, 0, 0, 1, 0, now_ms() + 5, 10100, :seal);
RESET SESSION AUTHORIZATION;

-- Evicted: not renewed, and not free before its time
SELECT snowflake_fleet.evict(0);
SELECT snowflake_fleet.evict(0);
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.evict(NULL);
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.evict(99);
\echo SQLSTATE :SQLSTATE
SELECT region, holder, until > clock_timestamp() AS until, free FROM snowflake_fleet.regions ORDER BY region;
SET SESSION AUTHORIZATION regress_fleet_a;
SELECT status, detail FROM snowflake_fleet.renew(:fleet, 13, :term, 0, 4, 1, now_ms(), 10100, :seal, 0);
RESET SESSION AUTHORIZATION;
SELECT snowflake_fleet.retire('regress_fleet_a');
SELECT region, holder FROM snowflake_fleet.regions ORDER BY region;

-- Another fleet, another layout, a clock that is ahead
SELECT snowflake_fleet.enroll('regress_fleet_a');
UPDATE snowflake_fleet.fleet SET id = 4711;
SET SESSION AUTHORIZATION regress_fleet_a;
SELECT snowflake_fleet.acquire(4712, 31, 0, 0, 1, 0, now_ms(), 10100, :seal);
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.acquire(4711, 31, 0, 0, 1, 0, now_ms(), 10100, :seal + 4);
\echo SQLSTATE :SQLSTATE
SELECT status, number, region, detail ~ '^The server''s clock is (1[0-9]{4}|20000) ms ahead' AS detail
  FROM snowflake_fleet.acquire(4711, 31, 0, 0, 1, 0, now_ms() + 20000, 10100, :seal);
RESET SESSION AUTHORIZATION;

-- Recovered
SELECT snowflake_fleet.recovered(NULL);
\echo SQLSTATE :SQLSTATE
DO $$
DECLARE
  wrong timestamptz;
BEGIN
  FOREACH wrong IN ARRAY ARRAY['infinity', '-infinity', clock_timestamp() + interval '1 minute', clock_timestamp() - interval '1 minute']::timestamptz[] LOOP
    BEGIN
      PERFORM snowflake_fleet.recovered(wrong);
      RAISE WARNING 'believed: %', wrong;
    EXCEPTION WHEN OTHERS THEN
      RAISE WARNING '%: %', SQLSTATE, SQLERRM;
    END;
  END LOOP;
END
$$;
SELECT snowflake_fleet.recovered(clock_timestamp()) - clock_timestamp() BETWEEN '1 hour 1 min 9 s' AND '1 hour 1 min 10 s' AS resumes;
SELECT region, holder, until - clock_timestamp() > '1 hour' AS until, free FROM snowflake_fleet.regions ORDER BY region;
SET SESSION AUTHORIZATION regress_fleet_a;
SELECT status, term > :term AS new_term, detail
  FROM snowflake_fleet.renew(4711, 13, :term, 3, 4, 1, now_ms(), 10100, :seal, 0);
-- A server that knows more than this database: nobody is told anything any more
SELECT term AS new_term FROM snowflake_fleet.acquire(4711, 41, 0, 0, 1, 0, now_ms(), 10100, :seal) \gset
SELECT status, detail FROM snowflake_fleet.renew(4711, 13, :new_term, 999, 4, 1, now_ms(), 10100, :seal, 0);
SELECT status FROM snowflake_fleet.acquire(4711, 42, 0, 0, 1, 0, now_ms(), 10100, :seal);
SELECT status FROM snowflake_fleet.give_back(4711, 13, :new_term, 1, :seal, 0, 2, now_ms());
RESET SESSION AUTHORIZATION;
SELECT snowflake_fleet.nothing_lost();
\echo SQLSTATE :SQLSTATE
SELECT halted FROM snowflake_fleet.fleet;
SELECT snowflake_fleet.recovered(clock_timestamp()) > clock_timestamp() AS resumes;
SET SESSION AUTHORIZATION regress_fleet_a;
SELECT status FROM snowflake_fleet.renew(4711, 13, :new_term, 999, 4, 1, now_ms(), 10100, :seal, 0);
RESET SESSION AUTHORIZATION;
SELECT halted FROM snowflake_fleet.fleet;

DROP EXTENSION snowflake_fleet CASCADE;
DROP FUNCTION now_ms();
DROP OWNED BY regress_fleet_a, regress_fleet_b;
DROP ROLE regress_fleet_a, regress_fleet_b;
