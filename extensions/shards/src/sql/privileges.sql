
SELECT snowflake.revoke_default_privileges('snowflake_shards');
