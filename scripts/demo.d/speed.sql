-- Measures how many ids per second one session mints, including the cost of the query. The query mints in 16 shards,
-- because one shard can mint only 1,024,000 ids per second.
CREATE TEMPORARY SEQUENCE plain;
CREATE TEMPORARY TABLE speed (position int, what text, ids bigint, seconds float);


-- The query calls next_id() sixteen times for each row, so producing the rows takes only a small part of the time.
SELECT 'SELECT ' || string_agg(format('count(snowflake.next_id(%s))', shard), ', ') AS minting,
       'SELECT ' || string_agg('count(nextval(''plain''))', ', ') AS counting
  FROM generate_series(0, 15) AS shard \gset

SELECT clock_timestamp() AS began \gset
:minting FROM generate_series(1, 125000) \g /dev/null
INSERT INTO speed VALUES (1, 'next_id(), a call each', 2000000, extract(epoch FROM clock_timestamp() - :'began'));

SELECT clock_timestamp() AS began \gset
SELECT count(snowflake.next_ids(shard, 50000)) FROM generate_series(0, 15) AS shard \g /dev/null
INSERT INTO speed VALUES (2, 'next_ids(), 50,000 a call', 800000, extract(epoch FROM clock_timestamp() - :'began'));

SELECT clock_timestamp() AS began \gset
:counting FROM generate_series(1, 125000) \g /dev/null
INSERT INTO speed VALUES (3, 'nextval(), for comparison', 2000000, extract(epoch FROM clock_timestamp() - :'began'));

SELECT what, to_char(ids, '9,999,999') AS ids, to_char(seconds, '990.9999') AS seconds,
       to_char(ids / seconds, '9,999,999,999') AS "ids per second"
  FROM speed ORDER BY position;
