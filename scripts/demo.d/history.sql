-- Adds rows whose ids have past times, as if the rows were made before the extension was installed. Each shard gets
-- 1,000 users of the month before last, and 100 photos of each of the last 30 days. The function make_id() makes an id
-- with the time of an old row.
SELECT format($dml$
  INSERT INTO shard_%1$s.users (id, name)
    SELECT snowflake.make_id(now() - interval '30 days' - n * interval '2592 s', %1$s, 0),
           'user ' || n
      FROM generate_series(1, 1000) AS n;
  INSERT INTO shard_%1$s.photos (id, user_id, caption)
    SELECT snowflake.make_id(now() - n * interval '864 s', %1$s, 0), u.id, 'photo ' || n
      FROM generate_series(1, 3000) AS n
      JOIN (SELECT id, row_number() OVER (ORDER BY id) FROM shard_%1$s.users) AS u
        ON u.row_number = n %% 1000 + 1;
$dml$, shard) FROM generate_series(0, 15) AS shard
\gexec
ANALYZE;
