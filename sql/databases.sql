-- Several databases of one server: none mints an id that another one minted, and places are limited.
-- This server has places for four.
SELECT current_database() AS home \gset
SET client_min_messages = warning;
CREATE DATABASE regress_snowflake_1;
\c regress_snowflake_1
CREATE EXTENSION snowflake;
\c :home
CREATE DATABASE regress_snowflake_2 TEMPLATE regress_snowflake_1;
CREATE DATABASE regress_snowflake_3 TEMPLATE regress_snowflake_1;
CREATE DATABASE regress_snowflake_4 TEMPLATE regress_snowflake_1;

-- In turns, for the same shard: always above what another database minted
SELECT snowflake.next_id(930) AS id \gset
\c regress_snowflake_1
SELECT snowflake.next_id(930) > :id AS above, snowflake.last_id() AS id \gset
SELECT :'above' AS above;
\c regress_snowflake_2
SELECT (snowflake.next_ids(930, 3000))[1] > :id AS above, snowflake.last_id() AS id \gset
SELECT :'above' AS above;
\c regress_snowflake_3
SELECT snowflake.next_id(930) > :id AS above, snowflake.last_id() AS id \gset
SELECT :'above' AS above;
\c :home
SELECT snowflake.next_id(930) > :id AS above;
-- The counters are the server's
SELECT ids FROM snowflake.shard_stats WHERE shard = 930;

-- The fifth finds no place; what reads needs none
\c regress_snowflake_4
SELECT snowflake.next_id(930);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.next_ids(930, 10);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.observe(:id);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.shard_of(:id), count(*) AS status, count(floor) AS floor, count("limit") AS "limit"
  FROM snowflake.layout, snowflake.clock_status GROUP BY 1;
-- ... the others go on
\c regress_snowflake_3
SELECT snowflake.next_id(930) > :id AS above;
-- ... and the place of a dropped one is free
\c :home
DROP DATABASE regress_snowflake_2;
\c regress_snowflake_4
SELECT snowflake.next_id(930) > :id AS above;
\c :home
SELECT snowflake.next_id(930) > :id AS above;
DROP DATABASE regress_snowflake_1;
DROP DATABASE regress_snowflake_3;
DROP DATABASE regress_snowflake_4;
SELECT snowflake.next_id(930) > :id AS above;
