-- Tests requests of a server: acquire, renew, give back, and refusals. Tests the views and functions for an operator.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
SET datestyle = iso;
CREATE EXTENSION snowflake_fleet;
SELECT snowflake_fleet.add_server('regress_fleet_a'), snowflake_fleet.add_server('regress_fleet_b');
CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql
  AS $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;
-- the seal of a layout with 41 bits of time, region 2, shard 12, sequence 10, tick 1 ms, epoch 2025
SELECT 1735689600000 * 2012500 + 22 * 57500 + 2 * 2300 + 12 * 92 + 10 * 4 AS seal \gset
CREATE FUNCTION ask(call text, incarnation bigint, regions int[] DEFAULT '{0,1}', region int DEFAULT -1, term bigint DEFAULT 0,
    newest bigint DEFAULT 0, nonce bigint DEFAULT 1, acked bigint DEFAULT 0, ahead bigint DEFAULT 0, length bigint DEFAULT 10100,
    floor_ms bigint DEFAULT 0, until_ms bigint DEFAULT 0, granted bigint DEFAULT 0, highest bigint DEFAULT 0, fleet bigint DEFAULT 0,
    seal bigint DEFAULT 1735689600000 * 2012500 + 22 * 57500 + 2 * 2300 + 12 * 92 + 10 * 4)
  RETURNS snowflake_fleet.answer LANGUAGE sql
  AS $$ SELECT snowflake_fleet.ask(call, fleet, incarnation, term, newest, nonce, acked, now_ms() + ahead, length, 86400000, seal,
                                   regions, region, floor_ms, until_ms, granted, highest) $$;
SELECT id AS fleet FROM snowflake_fleet.fleet \gset

-- pg_regress starts its server with fsync off
SET SESSION AUTHORIZATION regress_fleet_a;
SELECT ask('acquire', 1);
\echo SQLSTATE :SQLSTATE
RESET SESSION AUTHORIZATION;
CREATE OR REPLACE FUNCTION snowflake_fleet.require_durability() RETURNS void LANGUAGE sql AS '';

-- A server gets a lease, repeats its request, and renews the lease
SET SESSION AUTHORIZATION regress_fleet_a;
SELECT *, clock_ms BETWEEN now_ms() - 10000 AND now_ms() AS clock_ok, until_ms BETWEEN now_ms() + 5000 AND now_ms() + 10100 AS until_ok
  FROM ask('acquire', 11) \gset
SELECT :'status' AS status, :fleet = :fleet AS fleet, :number AS number, :region AS region, :grant_number AS grant_number,
       :floor_ms AS floor_ms, :'clock_ok' AS clock_ok, :'until_ok' AS until_ok;
SELECT status, region, grant_number FROM ask('acquire', 11, term => :term, newest => 1, nonce => 2, acked => 1);
SELECT status, region, grant_number, until_ms > :until_ms + 40000 AS longer
  FROM ask('renew', 11, region => 0, term => :term, newest => 2, nonce => 3, acked => 2, length => 60000);
-- A renewal for a shorter time does not shorten the lease, so no other server gets the region earlier
SELECT status, until_ms < :until_ms + 40000 AS shorter
  FROM ask('renew', 11, region => 0, term => :term, newest => 3, nonce => 4, acked => 3, ahead => -5000, length => 1000);
RESET SESSION AUTHORIZATION;
SELECT until_ms > :until_ms + 40000 AS not_shorter FROM snowflake_fleet.region WHERE region = 0;
-- A server gets its second region, but not a third region. A server never gets a region of another server.
SET SESSION AUTHORIZATION regress_fleet_a;
SELECT status, region FROM ask('acquire', 12);
SELECT status, until_ms > now_ms() AS later, regexp_replace(detail, '20[0-9-]+ [0-9:.+-]+', 'TIME', 'g') AS detail FROM ask('acquire', 13);
RESET SESSION AUTHORIZATION;
SET SESSION AUTHORIZATION regress_fleet_b;
SELECT status, region, detail FROM ask('acquire', 21);
SELECT status, region, detail FROM ask('acquire', 21, regions => '{1,2}');
SELECT status, region FROM ask('acquire', 21, regions => '{2,3}');
SELECT status, detail FROM ask('renew', 11, region => 0, term => :term, newest => 3, nonce => 4, acked => 3);
SELECT status FROM ask('give_back', 11, region => 0, term => :term, newest => 3, granted => 2, highest => now_ms());
SELECT ask('acquire', 21, regions => '{4}');
\echo SQLSTATE :SQLSTATE
RESET SESSION AUTHORIZATION;

-- The views of an operator
SELECT region, server, state, until > clock_timestamp() AS until, since < clock_timestamp() AS since, last_request IS NOT NULL AS last_request,
       clock_offset BETWEEN '-1 min' AND '1 s' AS clock_offset, free FROM snowflake_fleet.regions ORDER BY region;
SELECT server, last_request IS NOT NULL AS last_request, regions, in_use, refused FROM snowflake_fleet.servers ORDER BY server;
SET ROLE pg_monitor;
SELECT region, server FROM snowflake_fleet.regions ORDER BY region;
RESET ROLE;

-- A server can give back only its present lease, with a highest id limit within the lease
SET SESSION AUTHORIZATION regress_fleet_a;
SELECT status FROM ask('give_back', 11, region => 0, term => :term, newest => 3, granted => 1, highest => now_ms());
SELECT now_ms() AS highest \gset
SELECT status FROM ask('give_back', 11, region => 0, term => :term, newest => 3, granted => 2, highest => :highest);
SELECT status FROM ask('give_back', 11, region => 0, term => :term, newest => 3, granted => 2, highest => :highest);
-- The next run (incarnation) of the server begins at the limit with which the region was given back
SELECT status, region, floor_ms = :highest AS floor FROM ask('acquire', 14, ahead => 5);
RESET SESSION AUTHORIZATION;

-- A region is free when the clocks of both the requesting server and the lease server have reached the end of its
-- lease. In the next call, the server's clock has not reached the end of the lease.
SET SESSION AUTHORIZATION regress_fleet_b;
SELECT until_ms - now_ms() AS left FROM ask('acquire', 22, regions => '{3}', length => 1000) \gset
SELECT pg_sleep(1.1);
SELECT status FROM ask('acquire', 23, regions => '{3}', ahead => -2000);
SELECT status FROM ask('acquire', 23, regions => '{3}');
RESET SESSION AUTHORIZATION;

-- A revoked lease is not renewed, and its region is not free before the end of the lease
SELECT regexp_replace(snowflake_fleet.revoke_lease(0, dry_run => true), '20[0-9-]+ [0-9:.+-]+', 'TIME', 'g');
SELECT state FROM snowflake_fleet.regions WHERE region = 0;
SELECT regexp_replace(snowflake_fleet.revoke_lease(0), '20[0-9-]+ [0-9:.+-]+', 'TIME', 'g');
SELECT snowflake_fleet.revoke_lease(0);
SELECT snowflake_fleet.revoke_lease(NULL);
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.revoke_lease(99);
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.revoke_lease(1, 99);
\echo SQLSTATE :SQLSTATE
SELECT region, state, until > clock_timestamp() AS until, free FROM snowflake_fleet.regions WHERE region = 0;
SET SESSION AUTHORIZATION regress_fleet_a;
SELECT status, detail FROM ask('renew', 14, region => 0, nonce => 4, acked => 1);
RESET SESSION AUTHORIZATION;

-- If a server is confirmed dead, its region is free after the sum of max_lead, reserve and max_skew
SELECT snowflake_fleet.confirm_dead(1, '2 s');
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.confirm_dead(1, NULL, holder_is_stopped => true);
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.confirm_dead(99, '2 s', holder_is_stopped => true);
\echo SQLSTATE :SQLSTATE
SET SESSION AUTHORIZATION regress_fleet_a;
SELECT status FROM ask('renew', 12, region => 1, nonce => 2, acked => 1, length => 60000);
RESET SESSION AUTHORIZATION;
SELECT snowflake_fleet.confirm_dead(1, '2 s', dry_run => true) LIKE 'Region 1 would be free at %', state FROM snowflake_fleet.regions WHERE region = 1;
SELECT snowflake_fleet.confirm_dead(1, '2 s', holder_is_stopped => true) LIKE 'Region 1 is free at %' AS free;
SELECT until BETWEEN clock_timestamp() + '10 s' AND clock_timestamp() + '12 s' AS until, state FROM snowflake_fleet.regions WHERE region = 1;

-- Requests from another group of servers (fleet), with another layout, or with a clock that is ahead are refused. A
-- fleet with leases cannot be created again.
SET SESSION AUTHORIZATION regress_fleet_a;
\set VERBOSITY terse
SELECT ask('acquire', 31, fleet => :fleet + 1) IS NULL;
\set VERBOSITY default
\echo SQLSTATE :SQLSTATE
SELECT ask('acquire', 31, seal => :seal + 4);
\echo SQLSTATE :SQLSTATE
SELECT status, number, region, detail ~ '^The server''s clock is (1[0-9]{4}|20000) ms ahead' AS detail FROM ask('acquire', 31, ahead => 20000);
RESET SESSION AUTHORIZATION;
\set VERBOSITY terse
DROP EXTENSION snowflake_fleet CASCADE;
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.create_fleet() IS NULL;
\set VERBOSITY default
\echo SQLSTATE :SQLSTATE

-- Rows that were written without the functions are detected: by hand, by COPY, and deleted rows
SELECT snowflake_fleet.confirm_no_data_loss(old_is_stopped => true);
CREATE TABLE told AS SELECT * FROM snowflake_fleet.region;
UPDATE snowflake_fleet.region SET until_ms = until_ms WHERE region = 2;
SET SESSION AUTHORIZATION regress_fleet_b;
SELECT status, detail FROM ask('renew', 21, region => 2, nonce => 4, acked => 1);
RESET SESSION AUTHORIZATION;
SELECT snowflake_fleet.revoke_lease(2);
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.confirm_no_data_loss();
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.confirm_no_data_loss(old_is_stopped => true) LIKE 'These leases continue: region 2 of%' AS goes_on;
SET SESSION AUTHORIZATION regress_fleet_b;
SELECT status, detail FROM ask('renew', 21, region => 2, nonce => 4, acked => 1);
RESET SESSION AUTHORIZATION;
DELETE FROM snowflake_fleet.region WHERE region = 0;
SELECT detail FROM snowflake_fleet.has_moved();
INSERT INTO snowflake_fleet.region SELECT * FROM told WHERE region = 0;
SELECT detail FROM snowflake_fleet.has_moved();
SELECT snowflake_fleet.confirm_no_data_loss(old_is_stopped => true) IS NOT NULL;
UPDATE snowflake_fleet.server SET last_request = last_request WHERE name = 'regress_fleet_a';
SELECT detail FROM snowflake_fleet.has_moved();
SELECT snowflake_fleet.confirm_no_data_loss(old_is_stopped => true) IS NOT NULL;
-- Rows that were written by hand are detected even if a function ran before or after them in the same transaction
BEGIN;
SELECT regexp_replace(snowflake_fleet.revoke_lease(2), '20[0-9-]+ [0-9:.+-]+', 'TIME', 'g');
UPDATE snowflake_fleet.region SET until_ms = floor_ms WHERE region = 2;
SELECT detail FROM snowflake_fleet.has_moved();
SELECT snowflake_fleet.add_server('regress_fleet_a');
ROLLBACK;
BEGIN;
UPDATE snowflake_fleet.region SET until_ms = floor_ms WHERE region = 2;
SELECT snowflake_fleet.add_server('regress_fleet_a');
ROLLBACK;
-- The signatures of rows that functions wrote are valid in every time zone
SET timezone = 'Asia/Kolkata';
BEGIN;
SAVEPOINT inside;
SELECT snowflake_fleet.add_server('regress_fleet_a');
RELEASE inside;
SELECT snowflake_fleet.add_server('regress_fleet_b');
COMMIT;
VACUUM FULL snowflake_fleet.region;
VACUUM FREEZE snowflake_fleet.fleet, snowflake_fleet.server;
RESET timezone;
SELECT moved, detail FROM snowflake_fleet.has_moved();

-- confirm_data_loss() requires that the old lease server is stopped, that the given time nearly agrees with the clock,
-- and that there is a reason
\set VERBOSITY terse
SELECT snowflake_fleet.confirm_data_loss(NULL, true);
\set VERBOSITY default
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.confirm_data_loss(clock_timestamp());
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.confirm_data_loss(clock_timestamp(), old_is_stopped => true);
\echo SQLSTATE :SQLSTATE
\set VERBOSITY terse
SELECT wrong, snowflake_fleet.confirm_data_loss(wrong, true, true) FROM unnest('{infinity,-infinity}'::timestamptz[]) AS wrong;
SELECT snowflake_fleet.confirm_data_loss(clock_timestamp() + interval '16 minutes', true, true);
SELECT snowflake_fleet.confirm_data_loss(clock_timestamp() - interval '16 minutes', true, true);
\set VERBOSITY default
SELECT regexp_replace(snowflake_fleet.confirm_data_loss(clock_timestamp(), although_healthy => true, dry_run => true), '20[0-9-]+ [0-9:.+-]*[0-9]', 'TIME', 'g');
-- After rows were restored, a server that holds a lease continues, and no other server gets a region
SET SESSION AUTHORIZATION regress_fleet_b;
SELECT * FROM ask('renew', 21, region => 2, nonce => 4, acked => 1, length => 600000) \gset
RESET SESSION AUTHORIZATION;
BEGIN;
DELETE FROM snowflake_fleet.region;
INSERT INTO snowflake_fleet.region SELECT * FROM told WHERE region <> 3;
UPDATE snowflake_fleet.region SET incarnation = 0, state = CASE region WHEN 0 THEN 'revoked' ELSE 'given_back' END, server = NULL, until_ms = floor_ms;
COMMIT;
SET SESSION AUTHORIZATION regress_fleet_b;
SELECT status FROM ask('acquire', 24, regions => '{2,3}');
RESET SESSION AUTHORIZATION;
SELECT snowflake_fleet.confirm_data_loss(clock_timestamp(), old_is_stopped => true) LIKE 'Servers keep leases that end after %' AS done;
SELECT region, server, state, until - clock_timestamp() > '1 hour' AS until, free FROM snowflake_fleet.regions ORDER BY region;
SET SESSION AUTHORIZATION regress_fleet_b;
SELECT status, number AS last_request, term AS new_term
  FROM ask('renew', 21, regions => '{2,3}', region => 2, term => :term, newest => :number, nonce => 5, acked => 4, length => 600000, floor_ms => :floor_ms, until_ms => :until_ms) \gset
\echo :status
SELECT status, region, floor_ms = :floor_ms AS floor, until_ms >= :until_ms AS until
  FROM ask('renew', 21, region => 2, term => :new_term, newest => :last_request, nonce => 5, acked => 4, length => 600000, floor_ms => :floor_ms, until_ms => :until_ms);
SELECT status FROM ask('acquire', 25, regions => '{2,3}');
-- A server continues its lease even if the row of its region is missing, but not if the lease was revoked before
SELECT status FROM ask('renew', 26, region => 3, term => :new_term, newest => :last_request, floor_ms => :floor_ms, until_ms => :until_ms);
RESET SESSION AUTHORIZATION;
SET SESSION AUTHORIZATION regress_fleet_a;
SELECT status FROM ask('renew', 14, region => 0, term => :new_term, newest => :last_request, until_ms => :until_ms);
RESET SESSION AUTHORIZATION;

-- If a server has a newer answer than the lease server has stored, all later requests are refused
SET SESSION AUTHORIZATION regress_fleet_b;
SELECT status, detail FROM ask('renew', 21, region => 2, term => :new_term, newest => 999, nonce => 5, acked => 5);
SELECT status FROM ask('acquire', 42, regions => '{3}');
RESET SESSION AUTHORIZATION;
SELECT snowflake_fleet.confirm_no_data_loss(old_is_stopped => true);
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.confirm_data_loss(clock_timestamp() - interval '5 min', old_is_stopped => true) LIKE 'All leases end%' AS done;
SELECT halted, halted_by FROM snowflake_fleet.fleet;
SET SESSION AUTHORIZATION regress_fleet_b;
SELECT status FROM ask('renew', 21, region => 2, term => :new_term, newest => 999, nonce => 5, acked => 5, until_ms => :until_ms);
-- A request with a term (recovery number) that no lease server can have begun is an error, and does not stop other
-- requests
\set VERBOSITY terse
SELECT status FROM ask('renew', 21, region => 2, term => 9223372036854775807);
\set VERBOSITY default
\echo SQLSTATE :SQLSTATE
RESET SESSION AUTHORIZATION;
-- If a server falsely claims to have a newer answer, the operator removes it, and the leases of the other servers
-- continue
SELECT term FROM snowflake_fleet.fleet \gset
SET SESSION AUTHORIZATION regress_fleet_b;
SELECT status FROM ask('renew', 21, region => 2, term => :term, newest => 999);
RESET SESSION AUTHORIZATION;
SELECT snowflake_fleet.add_server('regress_fleet_c');
\echo SQLSTATE :SQLSTATE
SELECT regexp_replace(snowflake_fleet.remove_server('regress_fleet_b'), '20[0-9-]+ [0-9:.+-]+', 'TIME', 'g');
SELECT snowflake_fleet.confirm_no_data_loss(old_is_stopped => true);
SELECT snowflake_fleet.confirm_no_data_loss(old_is_stopped => true);
SELECT halted FROM snowflake_fleet.fleet;
SELECT snowflake_fleet.add_server('regress_fleet_b') IS NOT NULL AS added;
-- Two servers exchange their regions
SELECT snowflake_fleet.add_server('regress_fleet_c') IS NOT NULL AS added;
UPDATE snowflake_fleet.region SET floor_ms = 0, until_ms = 0, incarnation = 0, state = 'given_back', server = CASE WHEN region < 2 THEN 'regress_fleet_b' ELSE 'regress_fleet_c' END;
SELECT snowflake_fleet.settle_here();
SET SESSION AUTHORIZATION regress_fleet_b;
SELECT status, detail FROM ask('acquire', 71, regions => '{2,3}');
RESET SESSION AUTHORIZATION;
SET SESSION AUTHORIZATION regress_fleet_c;
SELECT status, region FROM ask('acquire', 72, regions => '{0,1}');
RESET SESSION AUTHORIZATION;
SET SESSION AUTHORIZATION regress_fleet_b;
SELECT status, region FROM ask('acquire', 71, regions => '{2,3}');
RESET SESSION AUTHORIZATION;
SELECT snowflake_fleet.remove_server('regress_fleet_c') IS NOT NULL AS removed;

-- Tests a lease server whose clock is behind a time that it has recorded
\set VERBOSITY terse
UPDATE snowflake_fleet.fleet SET newest_ms = now_ms() + 3600000;
SELECT snowflake_fleet.confirm_data_loss(clock_timestamp(), old_is_stopped => true);
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.confirm_no_data_loss(old_is_stopped => true);
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.sign_rows();
SELECT snowflake_fleet.confirm_dead(2, '2 s', holder_is_stopped => true);
\echo SQLSTATE :SQLSTATE

\set VERBOSITY default
-- If two runs of a server report a static region at the same time, both receive the conflict. If the older run no
-- longer reports after the first report of the newer run, the server was restarted.
UPDATE snowflake_fleet.fleet SET newest_ms = 0;
SELECT snowflake_fleet.sign_rows();
SET SESSION AUTHORIZATION regress_fleet_a;
SELECT status, detail FROM ask('report', 51, regions => '{}', region => 1);
SELECT status, detail FROM ask('report', 52, regions => '{}', region => 1);
SELECT status, detail FROM ask('report', 52, regions => '{}', region => 1);
SELECT status, detail FROM ask('report', 51, regions => '{}', region => 1);
SELECT status, detail FROM ask('report', 52, regions => '{}', region => 1);
RESET SESSION AUTHORIZATION;
SELECT region, server, state, free, incarnation FROM snowflake_fleet.regions WHERE state = 'static' ORDER BY incarnation;
-- No other server leases a static region, and neither does a clone with another configuration
SET SESSION AUTHORIZATION regress_fleet_b;
SELECT status, detail FROM ask('acquire', 61, regions => '{1,2}');
RESET SESSION AUTHORIZATION;
SET SESSION AUTHORIZATION regress_fleet_a;
SELECT status, detail FROM ask('acquire', 62, regions => '{1}');
RESET SESSION AUTHORIZATION;
-- Reports of static regions work before confirm_data_loss() was called, and a clock that went back causes no conflict
UPDATE snowflake_fleet.server SET last_request = last_request;
SET SESSION AUTHORIZATION regress_fleet_a;
SELECT status, detail ~ 'Region 1 is used by another server' AS conflict FROM ask('report', 52, regions => '{}', region => 1);
RESET SESSION AUTHORIZATION;
UPDATE snowflake_fleet.static_region SET last_request = last_request + interval '1 hour';
SET SESSION AUTHORIZATION regress_fleet_a;
SELECT status, detail FROM ask('report', 53, regions => '{}', region => 1);
RESET SESSION AUTHORIZATION;
SELECT moved FROM snowflake_fleet.has_moved();
SELECT snowflake_fleet.confirm_no_data_loss(old_is_stopped => true) IS NOT NULL AS settled;
SELECT regexp_replace(snowflake_fleet.remove_server('regress_fleet_a', dry_run => true), '20[0-9-]+ [0-9:.+-]+', 'TIME', 'g');

UPDATE snowflake_fleet.region SET floor_ms = 0, until_ms = 0;
DROP EXTENSION snowflake_fleet CASCADE;
DROP FUNCTION now_ms;
DROP TABLE told;
DROP OWNED BY regress_fleet_a, regress_fleet_b, regress_fleet_c;
DROP ROLE regress_fleet_a, regress_fleet_b, regress_fleet_c;
