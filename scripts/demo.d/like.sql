-- Simulates a user who scrolls back to a random day and likes the next 50 photos. This script is for pgbench.
\set shard random(0, 15)
\set day random(2, 29)
\set user_days random(31, 59)
INSERT INTO shard_:shard.likes (user_id, photo_id)
  SELECT u.id, p.id
    FROM (SELECT id FROM shard_:shard.users
           WHERE id >= snowflake.min_id(now() - :user_days * interval '1 day') ORDER BY id LIMIT 1) AS u,
         (SELECT id FROM shard_:shard.photos
           WHERE id >= snowflake.min_id(now() - :day * interval '1 day') ORDER BY id LIMIT 50) AS p;
