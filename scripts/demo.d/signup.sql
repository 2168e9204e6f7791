-- Simulates a user who signs up, posts a photo and likes the photo, for pgbench. Column defaults mint three ids.
\set shard random(0, 15)
BEGIN;
INSERT INTO shard_:shard.users (name) VALUES ('user ' || :client_id) RETURNING id AS new_user \gset
INSERT INTO shard_:shard.photos (user_id, caption) VALUES (:new_user, 'first light') RETURNING id AS new_photo \gset
INSERT INTO shard_:shard.likes (user_id, photo_id) VALUES (:new_user, :new_photo);
COMMIT;
