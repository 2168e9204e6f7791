-- A conversation: acquire, renew, give back; what is refused, and what the operator sees and does.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE EXTENSION snowflake_fleet;
SELECT snowflake_fleet.enroll('regress_fleet_a'), snowflake_fleet.enroll('regress_fleet_b');
CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql
  AS $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;
-- time 41, region 1, shard 12, sequence 10, tick 1 ms, since 2025
SELECT 1735689600000 * 2012500 + 22 * 57500 + 1 * 2300 + 12 * 92 + 10 * 4 AS seal \gset
SELECT id AS fleet FROM snowflake_fleet.fleet \gset

-- pg_regress starts its server with fsync off
SET SESSION AUTHORIZATION regress_fleet_a;
SELECT snowflake_fleet.acquire(0, 1, 0, 0, 0, 1, 0, now_ms(), 10100, 86400000, 0, :seal);
\echo SQLSTATE :SQLSTATE
RESET SESSION AUTHORIZATION;
CREATE OR REPLACE FUNCTION snowflake_fleet.require_durability() RETURNS void LANGUAGE sql AS '';

-- Granted, asked again, renewed
SET SESSION AUTHORIZATION regress_fleet_a;
SELECT *, clock_ms BETWEEN now_ms() - 10000 AND now_ms() AS clock_ok, until_ms BETWEEN now_ms() + 5000 AND now_ms() + 10100 AS until_ok
  FROM snowflake_fleet.acquire(0, 11, 0, 0, 0, 1, 0, now_ms(), 10100, 86400000, 0, :seal) \gset
SELECT :'status' AS status, :fleet = :fleet AS fleet, :number AS number, :region AS region, :grant_number AS grant_number,
       :floor_ms AS floor_ms, :'clock_ok' AS clock_ok, :'until_ok' AS until_ok;
SELECT status, region, grant_number FROM snowflake_fleet.acquire(:fleet, 11, :term, 1, 0, 2, 1, now_ms(), 10100, 86400000, 0, :seal);
SELECT status, region, grant_number, until_ms > :until_ms + 40000 AS longer
  FROM snowflake_fleet.renew(:fleet, 11, :term, 2, 0, 3, 2, now_ms(), 60000, 86400000, 0, :seal, 0, 0, 0, 0);
-- A shorter renewal shortens nothing: nobody else begins earlier
SELECT status, until_ms < :until_ms + 40000 AS shorter
  FROM snowflake_fleet.renew(:fleet, 11, :term, 3, 0, 4, 3, now_ms() - 5000, 1000, 86400000, 0, :seal, 0, 0, 0, 0);
RESET SESSION AUTHORIZATION;
SELECT until_ms > :until_ms + 40000 AS not_shorter FROM snowflake_fleet.region WHERE region = 0;
SET SESSION AUTHORIZATION regress_fleet_a;
-- The second region, then none
SELECT status, region FROM snowflake_fleet.acquire(0, 12, 0, 0, 0, 1, 0, now_ms(), 10100, 86400000, 0, :seal);
RESET SESSION AUTHORIZATION;
SET SESSION AUTHORIZATION regress_fleet_b;
SELECT status, region, until_ms > now_ms() AS later,
       regexp_replace(detail, '20[0-9-]+ [0-9:+]+', 'TIME', 'g') AS detail
  FROM snowflake_fleet.acquire(0, 21, 0, 0, 0, 1, 0, now_ms(), 10100, 86400000, 0, :seal);
-- One server for another's incarnation
SELECT status, detail FROM snowflake_fleet.renew(:fleet, 11, :term, 3, 0, 4, 3, now_ms(), 10100, 86400000, 0, :seal, 0, 0, 0, 0);
SELECT status FROM snowflake_fleet.give_back(:fleet, 11, :term, 3, 0, :seal, 0, 2, now_ms());
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
SELECT status FROM snowflake_fleet.give_back(:fleet, 11, :term, 3, 0, :seal, 0, 1, now_ms());
SELECT now_ms() AS highest \gset
SELECT status FROM snowflake_fleet.give_back(:fleet, 11, :term, 3, 0, :seal, 0, 2, :highest);
SELECT status FROM snowflake_fleet.give_back(:fleet, 11, :term, 3, 0, :seal, 0, 2, :highest);
-- The next incarnation begins there
SELECT status, region, floor_ms = :highest AS floor FROM snowflake_fleet.acquire(0, 13, 0, 0, 0, 1, 0, now_ms() + 5, 10100, 86400000, 0, :seal);
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
SELECT status, detail FROM snowflake_fleet.renew(:fleet, 13, :term, 0, 0, 4, 1, now_ms(), 10100, 86400000, 0, :seal, 0, 0, 0, 0);
RESET SESSION AUTHORIZATION;
SELECT snowflake_fleet.retire('regress_fleet_a');
SELECT region, holder FROM snowflake_fleet.regions ORDER BY region;

-- Another fleet, another layout, a clock that is ahead
SELECT snowflake_fleet.enroll('regress_fleet_a');
UPDATE snowflake_fleet.fleet SET id = 4711;
SET SESSION AUTHORIZATION regress_fleet_a;
SELECT snowflake_fleet.acquire(4712, 31, 0, 0, 0, 1, 0, now_ms(), 10100, 86400000, 0, :seal);
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.acquire(4711, 31, 0, 0, 0, 1, 0, now_ms(), 10100, 86400000, 0, :seal + 4);
\echo SQLSTATE :SQLSTATE
SELECT status, number, region, detail ~ '^The server''s clock is (1[0-9]{4}|20000) ms ahead' AS detail
  FROM snowflake_fleet.acquire(4711, 31, 0, 0, 0, 1, 0, now_ms() + 20000, 10100, 86400000, 0, :seal);
RESET SESSION AUTHORIZATION;

-- Recovered: with the old one stopped, by a clock that nearly agrees, and where something shows it
SELECT snowflake_fleet.recovered(NULL);
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.recovered(clock_timestamp());
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.nothing_lost();
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.recovered(clock_timestamp(), old_is_stopped => true);
\echo SQLSTATE :SQLSTATE
DO $$
DECLARE
  wrong timestamptz;
BEGIN
  FOREACH wrong IN ARRAY ARRAY['infinity', '-infinity', clock_timestamp() + interval '16 minutes', clock_timestamp() - interval '16 minutes']::timestamptz[] LOOP
    BEGIN
      PERFORM snowflake_fleet.recovered(wrong, old_is_stopped => true);
      RAISE WARNING 'believed: %', wrong;
    EXCEPTION WHEN OTHERS THEN
      RAISE WARNING '%: %', SQLSTATE, SQLERRM;
    END;
  END LOOP;
END
$$;
SELECT snowflake_fleet.recovered(clock_timestamp(), old_is_stopped => true, although_healthy => true) - clock_timestamp()
       BETWEEN '1 hour 1 min 9 s' AND '1 hour 1 min 10 s' AS resumes;
SELECT region, holder, until - clock_timestamp() > '1 hour' AS until, free FROM snowflake_fleet.regions ORDER BY region;
SET SESSION AUTHORIZATION regress_fleet_a;
SELECT status, term > :term AS new_term, detail
  FROM snowflake_fleet.renew(4711, 13, :term, 3, 0, 4, 1, now_ms(), 10100, 86400000, 0, :seal, 0, 0, 0, 0);
-- A server that says it knows more than this database, and one that has it signed: then nobody is told anything any more
SELECT term AS new_term FROM snowflake_fleet.acquire(4711, 41, 0, 0, 0, 1, 0, now_ms(), 10100, 86400000, 0, :seal) \gset
SELECT status, detail FROM snowflake_fleet.renew(4711, 13, :new_term, 999, 0, 4, 1, now_ms(), 10100, 86400000, 0, :seal, 0, 0, 0, 0);
SELECT status FROM snowflake_fleet.renew(4711, 13, :new_term + 1, 1, 5, 4, 1, now_ms(), 10100, 86400000, 0, :seal, 0, 0, 0, 0);
SELECT status FROM snowflake_fleet.acquire(4711, 42, 0, 0, 0, 1, 0, now_ms(), 10100, 86400000, 0, :seal);
SELECT snowflake_fleet.sign('heard');
\echo SQLSTATE :SQLSTATE
RESET SESSION AUTHORIZATION;
SELECT snowflake_fleet.sign(format('heard %s %s', :new_term, 999)) AS proof \gset
SET SESSION AUTHORIZATION regress_fleet_a;
SELECT status, detail FROM snowflake_fleet.renew(4711, 13, :new_term, 999, :proof, 4, 1, now_ms(), 10100, 86400000, 0, :seal, 0, 0, 0, 0);
SELECT status FROM snowflake_fleet.acquire(4711, 42, 0, 0, 0, 1, 0, now_ms(), 10100, 86400000, 0, :seal);
SELECT status FROM snowflake_fleet.give_back(4711, 13, :new_term, 1, 0, :seal, 0, 2, now_ms());
RESET SESSION AUTHORIZATION;
SELECT snowflake_fleet.nothing_lost(old_is_stopped => true);
\echo SQLSTATE :SQLSTATE
SELECT halted FROM snowflake_fleet.fleet;
SELECT snowflake_fleet.recovered(clock_timestamp() - interval '5 min', old_is_stopped => true) > clock_timestamp() + interval '1 hour' AS resumes;
SET SESSION AUTHORIZATION regress_fleet_a;
SELECT status FROM snowflake_fleet.renew(4711, 13, :new_term, 999, :proof, 4, 1, now_ms(), 10100, 86400000, 0, :seal, 0, 0, 0, 0);
RESET SESSION AUTHORIZATION;
SELECT halted FROM snowflake_fleet.fleet;

-- What the holder said may be lost: the operator is asked
\set VERBOSITY terse
SELECT snowflake_fleet.dead(1, holder_is_stopped => true);
\set VERBOSITY default
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.dead(1, holder_is_stopped => true, ahead => '-1 s');
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.dead(1, holder_is_stopped => true, ahead => '30 s') BETWEEN clock_timestamp() + '39 s' AND clock_timestamp() + '41 s' AS dead;

-- Restored in place: the table is another one. Who holds a lease goes on, and nobody else begins.
SELECT snowflake_fleet.dead(1, holder_is_stopped => true, ahead => '0') BETWEEN clock_timestamp() + '9 s' AND clock_timestamp() + '11 s' AS dead;
UPDATE snowflake_fleet.region SET until_ms = 5, floor_ms = 5;
SET SESSION AUTHORIZATION regress_fleet_a;
SELECT * FROM snowflake_fleet.acquire(4711, 51, 0, 0, 0, 1, 0, now_ms(), 600000, 86400000, 1100, :seal) \gset
RESET SESSION AUTHORIZATION;
UPDATE snowflake_fleet.region SET incarnation = 0, until_ms = 5, grant_number = 0;
UPDATE snowflake_fleet.fleet SET newest = 0, fleet_table = 'pg_class'::regclass;
SET SESSION AUTHORIZATION regress_fleet_a;
SELECT status FROM snowflake_fleet.acquire(4711, 52, 0, 0, 0, 1, 0, now_ms(), 10100, 86400000, 0, :seal);
RESET SESSION AUTHORIZATION;
SELECT snowflake_fleet.dead(1, holder_is_stopped => true);
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.recovered(clock_timestamp(), old_is_stopped => true) > clock_timestamp() AS resumes;
SET SESSION AUTHORIZATION regress_fleet_a;
SELECT status FROM snowflake_fleet.renew(4711, 51, :term, :number, :proof, 2, 1, now_ms(), 600000, 86400000, 1100, :seal, :region, :floor_ms, :until_ms + 1, :title);
SELECT status FROM snowflake_fleet.renew(4711, 52, :term, :number, :proof, 2, 1, now_ms(), 600000, 86400000, 1100, :seal, :region, :floor_ms, :until_ms, :title);
SELECT status, region AS again, term AS new_term, number AS new_number, proof AS new_proof
  FROM snowflake_fleet.renew(4711, 51, :term, :number, :proof, 2, 1, now_ms(), 600000, 86400000, 1100, :seal, :region, :floor_ms, :until_ms, :title) \gset
\echo :status :again
SELECT status, region = :region AS region, floor_ms = :floor_ms AS floor, until_ms >= :until_ms AS until
  FROM snowflake_fleet.renew(4711, 51, :new_term, :new_number, :new_proof, 2, 1, now_ms(), 600000, 86400000, 1100, :seal, :region, :floor_ms, :until_ms, :title);
SELECT status FROM snowflake_fleet.acquire(4711, 52, 0, 0, 0, 1, 0, now_ms(), 10100, 86400000, 0, :seal);
RESET SESSION AUTHORIZATION;

-- A holder that is dead: its region is free beyond lead, reserve and skew
SELECT snowflake_fleet.dead(:region);
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.dead(99, holder_is_stopped => true);
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.dead(NULL, holder_is_stopped => true);
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.dead(:region, holder_is_stopped => true) BETWEEN clock_timestamp() + '10 s' AND clock_timestamp() + '11.2 s' AS dead;
SELECT holder, until < clock_timestamp() + '11.2 s' AS until FROM snowflake_fleet.regions WHERE region = :region;
-- ... the greatest that any server has named, until that is set back
UPDATE snowflake_fleet.region SET until_ms = 5, floor_ms = 5 WHERE region = :region;
SET SESSION AUTHORIZATION regress_fleet_a;
SELECT * FROM snowflake_fleet.acquire(4711, 61, 0, 0, 0, 1, 0, now_ms(), 600000, 86400000, 60000, :seal) \gset
SELECT status FROM snowflake_fleet.renew(4711, 61, :term, :number, :proof, 2, 1, now_ms(), 600000, 86400000, 1100, :seal, :region, :floor_ms, :until_ms, :title);
RESET SESSION AUTHORIZATION;
SELECT snowflake_fleet.dead(:region, holder_is_stopped => true) BETWEEN clock_timestamp() + '60 s' AND clock_timestamp() + '71 s' AS dead;
UPDATE snowflake_fleet.fleet SET ahead_ms = 1100;
SELECT snowflake_fleet.dead(:region, holder_is_stopped => true) BETWEEN clock_timestamp() + '5 s' AND clock_timestamp() + '11.2 s' AS dead;

DROP EXTENSION snowflake_fleet CASCADE;
DROP FUNCTION now_ms();
DROP OWNED BY regress_fleet_a, regress_fleet_b;
DROP ROLE regress_fleet_a, regress_fleet_b;
