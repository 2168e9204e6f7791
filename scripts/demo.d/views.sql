SET timezone = 'UTC';
\x on
\echo :bold'snowflake.layout: what the ids look like, and when they run out':plain
SELECT * FROM snowflake.layout;
\echo :bold'snowflake.clock_history: the steps of the clock':plain
SELECT * FROM snowflake.clock_history;
\x off
\echo :bold'snowflake.shard_stats: what each shard has minted since the server started':plain
SELECT * FROM snowflake.shard_stats ORDER BY shard;
