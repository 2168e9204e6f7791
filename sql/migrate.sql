-- Tests errors of the functions of snowflake_migrate, and that a failed call has no effect. t/060 and t/061 test the
-- functions of snowflake_migrate while clients write.
CREATE EXTENSION snowflake_migrate;
CREATE EXTENSION snowflake_shards;
SET timezone = 'UTC';
\set SHOW_CONTEXT never
\set VERBOSITY terse
CREATE SCHEMA moving;
SET search_path = moving;

-- Shows every error of adopt(), with SQLSTATE, detail and hint
CREATE FUNCTION refusal(statement text) RETURNS TABLE (what text) LANGUAGE plpgsql AS $$
DECLARE
  state text; message text; detail text; hint text;
BEGIN
  EXECUTE statement;
  RETURN QUERY VALUES ('not refused');
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
  RETURN QUERY SELECT format('%s %s | %s | %s', state, message, detail, hint);
END
$$;
CREATE TABLE photos (id serial PRIMARY KEY, caption text, double integer GENERATED ALWAYS AS (2 * 3) STORED);
CREATE TABLE covers (photo_id integer PRIMARY KEY REFERENCES photos);
CREATE TABLE frames (cover integer REFERENCES covers, colour integer);
CREATE VIEW shown AS SELECT cover FROM frames;
ALTER TABLE frames ADD COLUMN twice integer GENERATED ALWAYS AS (2 * cover) STORED;
CREATE TABLE keyless (id bigint);
CREATE TABLE uuids (id uuid PRIMARY KEY);
CREATE TABLE parted (id integer PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE part PARTITION OF parted DEFAULT;
CREATE TABLE future (id bigint PRIMARY KEY);
INSERT INTO future SELECT snowflake.min_id('2050-01-01');
CREATE TABLE negative (id bigint PRIMARY KEY);
INSERT INTO negative VALUES (-5), (7);
CREATE SEQUENCE a_sequence;
INSERT INTO photos (caption) SELECT 'p' FROM generate_series(1, 100);
SELECT regexp_replace(r.what, 'begin at \d+', '...') AS refused
  FROM (VALUES ('photos, 243'), ('photos, 243, rewrite => true'), ('photos, NULL'), ('photos, 256'), ('photos, 243, id_column => "nothing"'),
               ('keyless, 243'), ('keyless, 243, id_column => "id"'), ('uuids, 243'), ('parted, 243'), ('part, 243'), ('shown, 243'),
               ('future, 243'), ('negative, 243'), ('a_sequence, 243'), ('photos, 243, id_column => "double"')) AS c (arguments),
       LATERAL refusal(format('CALL snowflake.adopt(%s)', regexp_replace(replace(arguments, '"', ''''), '^(\w+)', '''\1'''))) AS r;
SELECT count(*) AS columns_that_mint FROM snowflake.minting_columns() AS m JOIN pg_class ON oid = relation WHERE relnamespace = 'moving'::regnamespace;

BEGIN ISOLATION LEVEL REPEATABLE READ;
CALL snowflake.adopt('photos', 243, rewrite => true);
ROLLBACK;

-- A dry run of adopt() shows the statements and changes nothing
DROP VIEW shown;
ALTER TABLE frames DROP COLUMN twice;
SELECT regexp_replace(refusal($$CALL snowflake.adopt('photos', 243)$$), ', \d+ kB|about [\d.]+ s', '...', 'g');
CALL snowflake.adopt('photos', 243, rewrite => true, dry_run => true);
SELECT s.statement FROM snowflake.adopt_steps('{"(photos,id)"}', NULL, 243, true, true, false) AS s WHERE s.locks IS NULL;
SELECT format_type(atttypid, NULL) AS still, pg_get_expr(adbin, adrelid) FROM pg_attribute JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
 WHERE attrelid = 'photos'::regclass AND attname = 'id';
CALL snowflake.adopt('photos', 243, rewrite => true);
INSERT INTO photos (caption) VALUES ('new') RETURNING snowflake.shard_of(id);
SELECT nextval('photos_id_seq') AS the_sequence_is_kept, pg_get_serial_sequence('photos', 'id') AS and_is_not_the_columns;
-- A second call of adopt() changes nothing. If drop_sequence is true, adopt() drops the old sequence.
CALL snowflake.adopt('photos', 243);
CREATE TABLE "Odd ""one""" ("the ID" bigserial PRIMARY KEY);
INSERT INTO "Odd ""one""" SELECT FROM generate_series(1, 10);
CALL snowflake.adopt('"Odd ""one"""', 243, drop_sequence => true);
SELECT count(*) AS sequences FROM pg_class WHERE relkind = 'S' AND relname LIKE 'Odd%';
-- With drop_sequence, a sequence that another default uses is kept and listed
CREATE TABLE shares (id bigserial PRIMARY KEY);
CREATE TABLE with_it (id bigint DEFAULT nextval('shares_id_seq'));
SET client_min_messages = notice;
CALL snowflake.adopt('shares', 243, drop_sequence => true);
RESET client_min_messages;

-- Adopts tables whose ids come from one shared function
CREATE FUNCTION theirs() RETURNS bigint LANGUAGE sql AS 'SELECT snowflake.make_id(clock_timestamp(), 243, 0)';
CREATE TABLE one (id bigint PRIMARY KEY DEFAULT theirs());
CREATE TABLE two (id bigint PRIMARY KEY DEFAULT theirs());
SELECT refusal($$CALL snowflake.adopt('one', 243)$$);
BEGIN;
LOCK TABLE one, two;
CALL snowflake.adopt('one', 243);
CALL snowflake.adopt('two', 243);
COMMIT;

-- After adopt() new ids are greater than the greatest id in the table, even if that id is ahead of the clock.
DO $$
BEGIN
  INSERT INTO one SELECT snowflake.make_id(clock_timestamp() + interval '90 ms', 245, 1023);
  CALL snowflake.adopt('one', 243);
  INSERT INTO one VALUES (DEFAULT);
  ASSERT (SELECT id = max(id) OVER () FROM one ORDER BY snowflake.shard_of(id) LIMIT 1), 'greater than those that were there';
END
$$;

-- observe_all()
SELECT count(*) FROM snowflake.minting_columns() AS m JOIN pg_class ON oid = relation WHERE relnamespace = 'moving'::regnamespace;
INSERT INTO one SELECT snowflake.make_id(clock_timestamp() + interval '80 ms', 181, 0);
SELECT snowflake.observe_all() = (SELECT max(id) FROM one) AS greatest, snowflake.next_id(243) > (SELECT max(id) FROM one) AS later;
CREATE ROLE regress_moving;
GRANT EXECUTE ON FUNCTION snowflake.observe_all() TO regress_moving;
GRANT USAGE ON SCHEMA moving TO regress_moving;
GRANT SELECT ON one, two, photos TO regress_moving;
SET ROLE regress_moving;
SELECT r ~ '^42501 permission denied for some columns .*moving\."Odd ""one"""\."the ID"' AND r !~ 'moving\.one' AS names_the_rest FROM refusal('SELECT snowflake.observe_all()') AS r;
SELECT refusal($$CALL snowflake.adopt('one', 243)$$);
RESET ROLE;
ALTER TABLE two OWNER TO regress_moving;
SET ROLE regress_moving;
SELECT refusal($$CALL snowflake.adopt('two', 243)$$);
RESET ROLE;
INSERT INTO one SELECT snowflake.make_id(clock_timestamp() + interval '1 h', 181, 0);
SELECT regexp_replace(refusal('SELECT snowflake.observe_all()'), '\d{17,}', 'N', 'g');
DELETE FROM one;

-- The extension finds every column whose default mints: of domain types, with unusual names, and through functions
-- whose body can be read
CREATE DOMAIN minted AS bigint DEFAULT snowflake.next_id(243);
CREATE DOMAIN minted_again AS minted;
CREATE DOMAIN number AS bigint;
CREATE DOMAIN number_again AS number;
CREATE FUNCTION ours() RETURNS bigint LANGUAGE sql BEGIN ATOMIC; SELECT snowflake.next_id(243); END;
CREATE TABLE ways (by_domain minted, by_domains minted_again, into_domain number_again DEFAULT snowflake.next_id(243), through bigint DEFAULT ours(),
                   "a\b" bigint, "Schlüssel" bigint, not_this minted DEFAULT 7, nor_this number);
CREATE TRIGGER t1 BEFORE INSERT ON ways FOR EACH ROW EXECUTE FUNCTION snowflake.set_id('through', 'a\b');
CREATE TRIGGER t2 BEFORE INSERT ON ways FOR EACH ROW EXECUTE FUNCTION snowflake.set_id('through', 'Schlüssel');
SELECT count(*) AS six, count(*) FILTER (WHERE attribute ~ '^no[tr]') AS none FROM snowflake.minting_columns() WHERE relation = 'ways'::regclass;
INSERT INTO ways (by_domain) SELECT snowflake.make_id(clock_timestamp() + interval '80 ms', 181, 0);
SELECT snowflake.observe_all() = (SELECT max(by_domain) FROM ways) AS observed;
DROP TABLE ways;
-- A call of adopt() with an older snapshot is refused, because it would miss rows of other sessions
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT snowflake.observe_all();
ROLLBACK;
-- The error of adopt() names columns that contain values other than ids
CREATE TABLE as_uuid (id uuid DEFAULT snowflake.to_uuid(snowflake.next_id(243)), plain bigint);
CREATE VIEW by_view AS SELECT plain FROM as_uuid;
ALTER VIEW by_view ALTER plain SET DEFAULT snowflake.next_id(243);
\set VERBOSITY default
SELECT snowflake.observe_all() IS NOT NULL AS observed;
\set VERBOSITY terse
DROP TABLE as_uuid CASCADE;

-- A dry run of adopt() shows the reason for which the real call would fail
CREATE TABLE three (id bigint PRIMARY KEY DEFAULT theirs());
CREATE TABLE four (id bigint PRIMARY KEY DEFAULT theirs());
CALL snowflake.adopt('three', 243, dry_run => true);
CREATE TABLE row_typed (id integer PRIMARY KEY);
CREATE TABLE its_rows (one row_typed, several row_typed[]);
CREATE TYPE shape AS (id integer);
CREATE TABLE shaped OF shape (PRIMARY KEY (id));
SELECT refusal(format('CALL snowflake.adopt(%L, 243, rewrite => true, dry_run => true)', t)) FROM (VALUES ('row_typed'), ('shaped')) AS r (t);
CREATE TABLE filled (id bigint PRIMARY KEY);
-- If a prepared transaction holds the lock, the error shows its name, because it has no process
BEGIN;
LOCK TABLE filled IN ROW SHARE MODE;
PREPARE TRANSACTION 'it''s held';
SELECT r ~ '^55P03 .* held now: moving\.filled by prepared transaction ''it''''s held''\. ' AS named
  FROM refusal($$CALL snowflake.adopt('filled', 243, timeout => '0 s')$$) AS r;
ROLLBACK PREPARED 'it''s held';
CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.id := 7; RETURN NEW; END';
CREATE TRIGGER fill BEFORE INSERT ON filled FOR EACH ROW EXECUTE FUNCTION fill();
\set VERBOSITY default
CALL snowflake.adopt('filled', 243);
\set VERBOSITY terse

-- Partitions
CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake.next_id(243), name text NOT NULL, CHECK (name <> '')) PARTITION BY RANGE (id);
CREATE INDEX ON events (name);
SET timezone = 'America/New_York';
CALL snowflake.create_time_partitions('events', '1 month', 2, date_trunc('month', now(), 'UTC') - interval '40 days');
CALL snowflake.create_time_partitions('events', '1 month', ahead => 3);
SET timezone = 'UTC';
SELECT count(*) AS partitions,
       bool_and(c.relname = 'events_' || to_char(snowflake.time_of(low::bigint), 'YYYY_MM')) AS named,
       bool_and(extract(day FROM snowflake.time_of(low::bigint)) = 1 AND snowflake.time_of(low::bigint) = date_trunc('day', snowflake.time_of(low::bigint))) AS by_utc,
       bool_and(coalesce(lag_high = low, true)) AS without_gaps
  FROM (SELECT relname, b[1] AS low, b[2] AS high, lag(b[2]) OVER (ORDER BY b[1]::bigint) AS lag_high
          FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid,
               regexp_match(pg_get_expr(relpartbound, pg_class.oid), 'FROM \(''(\d+)''\) TO \(''(\d+)''\)') AS b
         WHERE inhparent = 'events'::regclass) AS c;
INSERT INTO events (name) VALUES ('now');
SELECT count(*) AS in_todays FROM events WHERE tableoid = ('events_' || to_char(now(), 'YYYY_MM'))::regclass;
SELECT count(*) AS indexes FROM pg_index WHERE indrelid = ('events_' || to_char(now(), 'YYYY_MM'))::regclass;
CREATE TABLE weekly (id bigint) PARTITION BY RANGE (id);
CALL snowflake.create_time_partitions('weekly', '7 days', 0);
SELECT extract(isodow FROM snowflake.time_of((regexp_match(pg_get_expr(relpartbound, oid), '\d{10,}'))[1]::bigint)) AS begins_on
  FROM pg_class WHERE oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = 'weekly'::regclass);
CREATE TABLE hourly (id bigint) PARTITION BY RANGE (id);
CALL snowflake.create_time_partitions('hourly', '6 hours', 1);
SELECT count(*) FROM pg_inherits WHERE inhparent = 'hourly'::regclass;
CREATE TABLE plain (id bigint);
CREATE TABLE by_text (id text) PARTITION BY RANGE (id);
CREATE TABLE messages (id bigint PRIMARY KEY DEFAULT snowflake.next_id(243)) PARTITION BY HASH (id snowflake.by_shard);
CREATE TABLE by_number (id bigint) PARTITION BY HASH (id);
CALL snowflake.create_partitions('messages', 4);
CALL snowflake.create_partitions('messages', 4);
INSERT INTO messages DEFAULT VALUES RETURNING tableoid::regclass;
-- If two sessions make partitions of a table at the same time, one session waits for the other. A new partition has the
-- same replica identity and publications as its parent.
CREATE TABLE published (id bigint NOT NULL, id2 bigint NOT NULL) PARTITION BY RANGE (id);
CREATE UNIQUE INDEX published_key ON published (id2, id);
CREATE FUNCTION as_parent(identity text) RETURNS TABLE (replica_identity "char", indexes bigint) LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE 'ALTER TABLE published REPLICA IDENTITY ' || identity;
  CALL snowflake.create_time_partitions('published', '1 year', 0);
  RETURN QUERY SELECT relreplident, (SELECT count(*) FROM pg_index WHERE indrelid = c.oid AND indisreplident)
                 FROM pg_inherits JOIN pg_class AS c ON c.oid = inhrelid WHERE inhparent = 'published'::regclass;
  EXECUTE (SELECT format('DROP TABLE %s', string_agg(inhrelid::regclass::text, ', ')) FROM pg_inherits WHERE inhparent = 'published'::regclass);
END
$$;
SELECT i, a.* FROM unnest(ARRAY['DEFAULT', 'NOTHING', 'FULL', 'USING INDEX published_key']) WITH ORDINALITY AS i (i, n), LATERAL as_parent(i) AS a ORDER BY n;
BEGIN;
CALL snowflake.create_partitions('messages', 4);
CALL snowflake.create_time_partitions('events', '1 month', ahead => 0);
SELECT relation::regclass, mode FROM pg_locks WHERE pid = pg_backend_pid() AND mode = 'ShareUpdateExclusiveLock' AND relation IN ('messages'::regclass, 'events'::regclass) ORDER BY 1;
COMMIT;
CREATE TABLE clash (id bigint) PARTITION BY HASH (id snowflake.by_shard);
CREATE TABLE clash_1 ();
SELECT regexp_replace(r, 'events_\d+(_\d+)*|''\d+''|clock shows [^|]*\.', '...', 'g') AS refused FROM (VALUES
  ($$create_time_partitions('events', '1 day')$$), ($$create_time_partitions('events', '5 months')$$), ($$create_time_partitions('events', '0')$$),
  ($$create_time_partitions('events', '1 month 1 day')$$), ($$create_time_partitions('events', '1 month', -1)$$),
  ($$create_time_partitions('events', NULL)$$), ($$create_time_partitions('events', '1 month', 3, '2100-01-01') $$),
  ($$create_time_partitions('plain', '1 month')$$), ($$create_time_partitions('by_text', '1 month')$$), ($$create_time_partitions('messages', '1 month')$$),
  ($$create_partitions('messages', 8)$$), ($$create_partitions('messages', 0)$$), ($$create_partitions('messages', 257)$$),
  ($$create_partitions('by_number', 4)$$), ($$create_partitions('events', 4)$$), ($$create_partitions('clash', 2)$$)) AS c (called),
  LATERAL refusal('CALL snowflake.' || called) AS r;
SELECT count(*) AS left_behind FROM pg_inherits WHERE inhparent = 'clash'::regclass;

-- A partition is dropped if all of its ids are older than the limit. By default the statements that drop partitions are
-- only shown.
CREATE TABLE windows (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
SELECT format('CREATE TABLE w_%s PARTITION OF windows FOR VALUES FROM (%L) TO (%L) %s', to_char(m, 'MM'), snowflake.min_id(m), snowflake.min_id(m + '1 month'), CASE to_char(m, 'MM') WHEN '05' THEN 'PARTITION BY HASH (id)' END)
  FROM generate_series(timestamptz '2025-05-01', '2025-08-01', '1 month') AS m \gexec
CREATE TABLE w_05_0 PARTITION OF w_05 FOR VALUES WITH (MODULUS 1, REMAINDER 0);
CREATE TABLE w_low PARTITION OF windows FOR VALUES FROM (MINVALUE) TO (5);
CREATE TABLE w_rest PARTITION OF windows DEFAULT;
INSERT INTO windows SELECT snowflake.make_id(m, 5, 0) FROM generate_series(timestamptz '2025-04-02', '2025-08-02', '1 month') AS m;
INSERT INTO windows VALUES (1), (-7);
CALL snowflake.drop_time_partitions('windows', '2025-07-31');
SELECT count(*) AS partitions FROM pg_inherits WHERE inhparent = 'windows'::regclass;
CREATE VIEW on_window AS SELECT id FROM w_06;
SELECT refusal($$CALL snowflake.drop_time_partitions('windows', '2025-07-31', dry_run => false)$$);
DROP VIEW on_window;
CREATE TABLE of_window (id bigint REFERENCES windows);
SELECT refusal($$CALL snowflake.drop_time_partitions('windows', '2025-07-31', dry_run => false)$$) ~ '^2BP01 .*depend' AS referenced;
DROP TABLE of_window;
BEGIN;
SELECT count(*) FROM w_06;
PREPARE TRANSACTION 'window';
SET lock_timeout = '50ms';
SELECT refusal($$CALL snowflake.drop_time_partitions('windows', '2025-07-31', dry_run => false)$$);
SHOW lock_timeout;
ROLLBACK PREPARED 'window';
RESET lock_timeout;
CALL snowflake.drop_time_partitions('windows', '2025-07-31', dry_run => false);
SHOW lock_timeout;
SELECT tableoid::regclass, count(*) FROM windows GROUP BY 1 ORDER BY 1;
-- All lock waits of a call have one deadline. In this test, waiting for the first partition exceeds the deadline.
SELECT format('CREATE TABLE w_06 PARTITION OF windows FOR VALUES FROM (%L) TO (%L)', snowflake.min_id('2025-06-01'), snowflake.min_id('2025-07-01')) \gexec
CREATE TABLE deadlines (at timestamptz DEFAULT clock_timestamp(), lock_timeout text);
CREATE FUNCTION drop_slowly() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO moving.deadlines (lock_timeout) VALUES (current_setting('lock_timeout'));
  PERFORM pg_sleep(0.06);
END
$$;
CREATE EVENT TRIGGER drop_slowly ON ddl_command_start WHEN TAG IN ('DROP TABLE') EXECUTE FUNCTION drop_slowly();
SET lock_timeout = '50ms';
CALL snowflake.drop_time_partitions('windows', '2025-08-01', false);
RESET lock_timeout;
DROP EVENT TRIGGER drop_slowly;
SELECT count(*), (array_agg(lock_timeout ORDER BY at DESC))[1] AS last FROM deadlines;
CALL snowflake.drop_time_partitions('windows', '1999-01-01', false);
SELECT regexp_replace(r, 'clock shows [^|]*\.', 'clock shows ....') AS refused FROM (VALUES
  ($$'windows', '2200-01-01'$$), ($$'windows', 'infinity'$$), ($$'windows', '-infinity'$$), ($$'windows', NULL$$), ($$'windows', '2025-07-31', NULL$$),
  ($$'plain', '2025-07-31'$$), ($$'messages', '2025-07-31'$$), ($$'by_text', '2025-07-31'$$)) AS c (arguments),
  LATERAL refusal(format('CALL snowflake.drop_time_partitions(%s)', arguments)) AS r;
-- Values of a sequence are smaller than ids. drop_time_partitions() does not take them for old ids.
CREATE TABLE numbered (id bigserial PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE numbered_1 PARTITION OF numbered FOR VALUES FROM (1) TO (1000000);
INSERT INTO numbered SELECT FROM generate_series(1, 10);
SELECT refusal(format('CALL snowflake.drop_time_partitions(''numbered'', ''2025-07-31'', %L)', dry_run)) FROM (VALUES (true), (false)) AS v (dry_run);
TRUNCATE numbered;
CALL snowflake.drop_time_partitions('numbered', '2025-07-31', false);

-- Functions that a check or an index calls must accept bigint. If a function of a check or an index accepts only
-- integer, adopt() fails before it changes anything. Functions that are called with a column which refers to the key
-- must accept bigint, too. Tables of other roles in the same schema have no effect on adopt().
CREATE FUNCTION small(integer) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT $1 < 1000';
CREATE TABLE checked (id integer PRIMARY KEY CHECK (id > 0), n integer, EXCLUDE (id WITH =));
CREATE INDEX ON checked ((id % 7)) WHERE id > 5;
CREATE STATISTICS checked_statistics ON (id % 7), n FROM checked;
CREATE TABLE of_checked (id bigint, "Checked" integer REFERENCES checked, about integer REFERENCES checked, CONSTRAINT fine CHECK (small("Checked")));
INSERT INTO checked VALUES (7);
SELECT i, refusal(format('CALL snowflake.adopt(''checked'', 5, rewrite => true, dry_run => %L)', i)) FROM unnest(ARRAY[true, false]) AS i;
ALTER TABLE of_checked DROP CONSTRAINT fine;
CREATE INDEX small_ones ON checked (n) WHERE small(id);
SELECT refusal($$CALL snowflake.adopt('checked', 5, rewrite => true, dry_run => true)$$);
CREATE FUNCTION small(bigint) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT $1 < 1000';
SELECT 'checked'::regclass::oid AS checked \gset
CREATE TABLE trial_:checked ();
CALL snowflake.adopt('checked', 5, rewrite => true, dry_run => true);
SELECT count(*) AS narrow, count(*) FILTER (WHERE attrelid::regclass::text ~ 'trial') AS left_behind FROM pg_attribute
 WHERE attrelid::regclass::text ~ 'checked$|trial' AND attnum > 0 AND atttypid = 'integer'::regtype;
CALL snowflake.adopt('checked', 5, rewrite => true);
SELECT attrelid::regclass, attname FROM pg_attribute WHERE attrelid::regclass::text ~ 'checked$' AND attnum > 0 AND atttypid = 'bigint'::regtype ORDER BY 1, 2;

-- DDL over all shards' schemas
CREATE SCHEMA moving_template;
CREATE TABLE moving_template.notes (id bigint PRIMARY KEY DEFAULT snowflake.next_id(0), body text);
CALL snowflake.create_shards('moving_template', '[0,4)', prefix => 'moving_');
CALL snowflake.alter_shards('ALTER TABLE notes ADD COLUMN stars integer', '[0,4)', prefix => 'moving_');
SELECT count(*) FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid WHERE relname = 'notes' AND attname = 'stars';
ALTER TABLE moving_2.notes ADD COLUMN more integer;
\set VERBOSITY default
CALL snowflake.alter_shards('ALTER TABLE notes ADD COLUMN more integer', '[0,4)', prefix => 'moving_');
\set VERBOSITY terse
SELECT string_agg(relnamespace::regnamespace::text, ' ' ORDER BY 1) AS done FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid WHERE relname = 'notes' AND attname = 'more';
ALTER TABLE moving_2.notes DROP COLUMN more;
CALL snowflake.alter_shards('ALTER TABLE notes ADD COLUMN more integer', '[2,4)', prefix => 'moving_');
ALTER SCHEMA moving_1 OWNER TO regress_moving;
\set VERBOSITY default
CALL snowflake.alter_shards('ALTER TABLE notes ADD COLUMN evil integer', '[0,4)', prefix => 'moving_');
CALL snowflake.alter_shards('ALTER TABLE moving.photos ADD COLUMN evil integer', '[3,4)', prefix => 'moving_');
CALL snowflake.alter_shards('ALTER TABLE photos ADD COLUMN evil integer', '[3,4)', prefix => 'moving_');
CALL snowflake.alter_shards('ALTER TABLE notes ADD COLUMN evil bigint DEFAULT snowflake.next_id(2)', '[2,4)', prefix => 'moving_', commit_each => false);
CALL snowflake.alter_shards('ALTER TABLE notes ADD COLUMN evil integer', '[2,6)', prefix => 'moving_');
CALL snowflake.alter_shards('ALTER TABLE notes ADD COLUMN evil integer', '[0,)', prefix => 'moving_');
CALL snowflake.alter_shards(NULL, '[0,1)');
-- A temporary table of the session does not count as a shard's table
CREATE TEMPORARY TABLE elsewhere (id bigint);
CALL snowflake.alter_shards('ALTER TABLE elsewhere ADD COLUMN evil integer', '[3,4)', prefix => 'moving_');
CALL snowflake.alter_shards('COMMENT ON TABLE elsewhere IS ''evil''', '[3,4)', prefix => 'moving_');
CALL snowflake.alter_shards('CREATE VIEW evil AS SELECT * FROM elsewhere', '[3,4)', prefix => 'moving_');
CALL snowflake.alter_shards('DROP TABLE elsewhere', '[3,4)', prefix => 'moving_');
CREATE TABLE moving_3.parent (id bigint) PARTITION BY RANGE (id);
CREATE TABLE moving.part_of_another PARTITION OF moving_3.parent DEFAULT;
CALL snowflake.alter_shards('DROP TABLE parent', '[3,4)', prefix => 'moving_');
SELECT count(*) AS partitions FROM pg_inherits WHERE inhparent = 'moving_3.parent'::regclass;
DROP TABLE moving_3.parent;
CALL snowflake.alter_shards('DROP TABEL notes', '[3,4)', prefix => 'moving_');
SELECT count(*) AS columns FROM pg_attribute WHERE attrelid = 'elsewhere'::regclass AND attnum > 0;
DROP TABLE elsewhere;
-- alter_shards() refuses DML, and statements with privileges, owners, other schemas, CASCADE, temporary objects or
-- CONCURRENTLY
\a
SELECT statement, regexp_replace(refusal(format('CALL snowflake.alter_shards(%L, ''[2,4)'', prefix => ''moving_'')', statement)), ' \| alter_shards\(\) runs CREATE.*', '') AS refused
  FROM unnest(ARRAY[
    '', ';', 'SELECT 1', 'DELETE FROM notes', 'ALTER TABLE notes ADD COLUMN evil integer; UPDATE notes SET evil = 1', 'TRUNCATE notes', 'COPY notes FROM STDIN',
    'CREATE TABLE evil AS SELECT * FROM notes', 'GRANT SELECT ON notes TO PUBLIC', 'ALTER TABLE notes OWNER TO regress_moving', 'DROP SCHEMA moving_0',
    'DO ''BEGIN END''', 'SET search_path = moving', 'COMMIT', 'VACUUM notes', 'CREATE FUNCTION evil() RETURNS integer LANGUAGE sql AS ''SELECT 1''', 'DROP ROLE regress_moving',
    'ALTER TABLE notes SET SCHEMA moving', 'ALTER TABLE notes ENABLE RULE evil', 'CREATE RULE evil AS ON INSERT TO notes DO INSTEAD NOTHING', 'ALTER VIEW notes OWNER TO regress_moving',
    'CREATE INDEX CONCURRENTLY ON notes (stars)', 'DROP INDEX CONCURRENTLY notes_pkey', 'DROP TABLE notes CASCADE', 'ALTER TABLE notes DROP COLUMN stars CASCADE',
    'CREATE TEMP TABLE evil ()', 'CREATE TEMP VIEW evil AS SELECT 1', 'CREATE TABLE pg_temp.evil ()', 'CREATE TABLE moving.evil ()', 'DROP TABLE notes, moving.photos',
    'CREATE INDEX ON moving.photos (id)', 'ALTER INDEX moving.photos_pkey RENAME TO evil', 'COMMENT ON TABLE moving.photos IS ''evil''', 'COMMENT ON COLUMN moving.photos.id IS ''evil''',
    'COMMENT ON TABLE pg_class IS ''evil''', 'COMMENT ON COLUMN pg_class.relname IS ''evil''', 'COMMENT ON SCHEMA moving IS ''evil''', 'DROP TRIGGER evil ON moving.photos',
    'CREATE TRIGGER evil BEFORE INSERT ON moving.photos FOR EACH ROW EXECUTE FUNCTION snowflake.set_id(''id'')', 'CREATE POLICY evil ON moving.photos', 'ALTER POLICY evil ON moving.photos RENAME TO worse',
    'CREATE TABLE evil (id bigint REFERENCES moving.photos)', 'CREATE TABLE evil (id bigint, FOREIGN KEY (id) REFERENCES moving.photos)', 'CREATE TABLE evil () INHERITS (moving.photos)',
    'ALTER TABLE notes ADD FOREIGN KEY (id) REFERENCES moving.photos', 'ALTER TABLE notes ADD COLUMN evil bigint REFERENCES moving.photos', 'ALTER TABLE notes INHERIT moving.photos',
    'ALTER TABLE notes ATTACH PARTITION moving.photos DEFAULT', 'ALTER TABLE notes RENAME COLUMN', 'ALTER TABLE notes ADD COLUMN evil integer; DROP TABLE absent']) AS statement;
\a
-- ALTER TABLE in alter_shards() changes child tables in other schemas, too
CREATE TABLE moving.child () INHERITS (moving_3.notes);
CALL snowflake.alter_shards('ALTER TABLE notes ADD COLUMN evil integer', '[3,4)', prefix => 'moving_');
DROP TABLE moving.child;
-- Runs every kind of statement that alter_shards() allows
CALL snowflake.alter_shards($$
  CREATE TABLE tags (note bigint REFERENCES notes, tag text, PRIMARY KEY (note, tag));
  ALTER TABLE tags ADD COLUMN made date DEFAULT now(), ADD CHECK (tag > ''), ALTER COLUMN made SET NOT NULL, ENABLE ROW LEVEL SECURITY;
  CREATE INDEX tags_made ON tags (made);
  ALTER INDEX tags_made SET (fillfactor = 80);
  ALTER INDEX tags_made RENAME TO tags_by_made;
  CREATE VIEW tagged AS SELECT tag, body FROM tags JOIN notes ON id = note;
  CREATE TRIGGER set_id BEFORE INSERT ON tags FOR EACH ROW EXECUTE FUNCTION snowflake.set_id('', 'note');
  CREATE POLICY all_of_them ON tags USING (true);
  ALTER POLICY all_of_them ON tags USING (note > 0);
  ALTER TABLE tags RENAME COLUMN tag TO word;
  COMMENT ON TABLE tags IS 'words of notes';
  COMMENT ON COLUMN tags.word IS 'one of them';
  COMMENT ON TRIGGER set_id ON tags IS 'shares the note''s shard'$$, '[2,4)', prefix => 'moving_');
\d moving_3.tags
CALL snowflake.alter_shards('DROP POLICY all_of_them ON tags; DROP TRIGGER set_id ON tags; DROP VIEW tagged; DROP INDEX tags_by_made; DROP TABLE IF EXISTS tags, absent', '[2,4)', prefix => 'moving_');
SELECT relname FROM pg_class WHERE relnamespace = 'moving_3'::regnamespace ORDER BY 1;
BEGIN;
CALL snowflake.alter_shards('ALTER TABLE notes ADD COLUMN other integer', '[2,4)', prefix => 'moving_', commit_each => false);
ROLLBACK;
\set VERBOSITY terse
SELECT count(*) AS altered FROM pg_attribute WHERE attname IN ('evil', 'other');

-- backfill(): refusals. After backfill() every row has an id of its own time, in a region that differs from the
-- server's region.
CREATE TABLE old (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), created_at timestamptz, made timestamp, new_id bigint);
INSERT INTO old (created_at) SELECT '2026-03-01'::timestamptz + (n / 10) * interval '1 min' FROM generate_series(1, 500) AS n;
INSERT INTO old (created_at) SELECT '2026-05-01' FROM generate_series(1, 3000) AS n;
INSERT INTO old (created_at) VALUES ('2020-01-01'), (now() + interval '1 day'), (NULL);
UPDATE old SET made = created_at AT TIME ZONE 'UTC';
SELECT refusal($$CALL snowflake.backfill('old', 'new_id', 'created_at', 243)$$);
ALTER TABLE old ALTER COLUMN new_id SET DEFAULT snowflake.next_id(243);
SELECT refusal($$CALL snowflake.backfill('old', 'new_id', 'created_at', 243)$$);
CREATE INDEX ON old (created_at) WHERE new_id IS NULL;
CREATE INDEX ON old (made) WHERE new_id IS NULL;
SELECT r AS refused FROM (VALUES ($$'old', 'id', 'created_at', 243$$), ($$'old', 'new_id', 'id', 243$$), ($$'old', 'new_id', 'made', 243$$),
  ($$'old', 'new_id', 'created_at', 243, utc => true$$), ($$'old', 'new_id', 'created_at', 256$$), ($$'old', 'new_id', 'created_at', 243, region => 32$$),
  ($$'old', 'new_id', 'created_at', 243, batch => 0$$), ($$'old', 'new_id', 'created_at', NULL$$), ($$'events', 'id', 'id', 243$$),
  (format($$'old', 'new_id', 'created_at', 243, region => %s$$, current_setting('snowflake.region')))) AS c (arguments),
  LATERAL refusal(format('CALL snowflake.backfill(%s)', arguments)) AS r;
SELECT count(*) AS reserved FROM snowflake.backfills;
\set VERBOSITY default
CALL snowflake.backfill('old', 'new_id', 'created_at', 243, batch => 700);
\set VERBOSITY terse
SELECT count(new_id), count(DISTINCT new_id), bool_and(snowflake.time_of(new_id) >= created_at - interval '1 ms') AS not_earlier,
       max(snowflake.time_of(new_id) - created_at) AS at_most, bool_and(snowflake.region_of(new_id) <> current_setting('snowflake.region')::integer) AS elsewhere
  FROM old WHERE new_id IS NOT NULL;
SELECT bool_and(new_id > before) AS ascending FROM (SELECT new_id, lag(new_id) OVER (ORDER BY created_at, new_id) AS before FROM old WHERE new_id IS NOT NULL) AS s;
-- For another table backfill() uses another region or shard, even if the times have no time zone
CREATE TABLE old_too AS SELECT id, made, NULL::bigint AS new_id FROM old WHERE made BETWEEN '2026-01-01' AND '2026-06-01';
ALTER TABLE old_too ALTER COLUMN new_id SET DEFAULT snowflake.next_id(243);
CREATE INDEX ON old_too (made);
SELECT refusal(format($$CALL snowflake.backfill('old_too', 'new_id', 'made', 243, region => %s, utc => true)$$, region))  ~ 'is reserved' AS taken FROM snowflake.backfills;
CALL snowflake.backfill('old_too', 'new_id', 'made', 243, utc => true);
SELECT count(*) AS twice FROM old JOIN old_too USING (new_id);
SELECT count(new_id), bool_and(snowflake.time_of(new_id) AT TIME ZONE 'UTC' >= made - interval '1 ms') AS not_earlier FROM old_too;
-- A region and shard (origin) whose ids are in a table, even in uncommitted rows, is not chosen, and is refused as an
-- argument. A region and shard (origin) that gets ids after its reservation is refused, too.
CREATE TABLE by_hand (id bigint PRIMARY KEY DEFAULT snowflake.next_id(17), n integer) PARTITION BY HASH (id);
CREATE TABLE by_hand_0 PARTITION OF by_hand FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE by_hand_1 PARTITION OF by_hand FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE TABLE heap (id bigint DEFAULT snowflake.next_id(17), made timestamptz);
CREATE INDEX ON heap (made);
INSERT INTO by_hand SELECT snowflake.make_id('2026-03-01', 17, n, 31) FROM generate_series(1, 100) AS n;
INSERT INTO heap SELECT snowflake.make_id('2026-03-01', 17, 5, 30), NULL;
BEGIN;
INSERT INTO heap SELECT snowflake.make_id('2026-03-01', 17, 6, 29), NULL;
PREPARE TRANSACTION 'by hand';
INSERT INTO heap SELECT NULL, '2026-03-01' FROM generate_series(1, 10);
SELECT refusal($$CALL snowflake.backfill('heap', 'id', 'made', 17, region => 31)$$) UNION ALL SELECT refusal($$CALL snowflake.backfill('heap', 'id', 'made', 17, region => 29)$$);
CALL snowflake.backfill('heap', 'id', 'made', 17);
ROLLBACK PREPARED 'by hand';
SELECT DISTINCT snowflake.region_of(id) AS region FROM heap WHERE made IS NOT NULL;
INSERT INTO by_hand SELECT snowflake.make_id(clock_timestamp(), 17, 0, 28);
SELECT regexp_replace(refusal($$CALL snowflake.backfill('heap', 'id', 'made', 17)$$), 'region and shard, of .* or later', 'region and shard, of UNTIL or later');
DELETE FROM by_hand;
CALL snowflake.backfill('heap', 'id', 'made', 17);
-- Each row that is inserted later gets a different id of its time, in the region and shard that are reserved for the
-- table. If all ids of a time unit (tick) are used, the row gets an id of the next one.
SELECT regexp_replace(refusal(format('SELECT snowflake.late_id(%s)', a)), 'up to now \([^)]*\)', 'up to now (NOW)') FROM unnest(ARRAY['NULL, 17', '''2020-01-01'', 17', '''2026-03-01'', 256', '''2026-03-01'', 17, 32',
  format('''2026-03-01'', 17, %s', current_setting('snowflake.region')), '''2026-03-01'', 17, 30', '''infinity'', 17']) AS a;
DELETE FROM by_hand;
INSERT INTO by_hand SELECT snowflake.late_id('2026-03-01', 17), n FROM generate_series(1, 2500) AS n;
SELECT count(DISTINCT id), bool_and(snowflake.shard_of(id) = 17 AND snowflake.region_of(id) = 31) AS of_it, max(snowflake.time_of(id) - '2026-03-01') AS at_most FROM by_hand;
BEGIN;
INSERT INTO by_hand SELECT snowflake.late_id('2026-02-01', 17), 0 RETURNING snowflake.time_of(id) = '2026-02-01';
ROLLBACK;
SELECT snowflake.late_id(clock_timestamp(), 17) <> snowflake.late_id(clock_timestamp(), 17) AS others, snowflake.next_id(17) > (SELECT max(id) FROM snowflake.late_ids) AS later;
SELECT DISTINCT e.minted_by, e.possible FROM snowflake.late_ids AS l, LATERAL snowflake.explain_id(l.id) AS e;
SELECT relation, region, shard, last_position FROM snowflake.backfills WHERE table_oid IS NULL;
-- The procedure backfill() fails if a trigger skips rows
CREATE TABLE guarded (id bigint DEFAULT snowflake.next_id(243), created_at timestamptz);
CREATE INDEX ON guarded (created_at);
INSERT INTO guarded VALUES (NULL, '2026-01-01');
CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER keep BEFORE UPDATE ON guarded FOR EACH ROW EXECUTE FUNCTION keep();
\set VERBOSITY default
CALL snowflake.backfill('guarded', 'id', 'created_at', 243);
-- The procedure backfill() fails if a trigger removes the new ids
CREATE TABLE kept (id bigint DEFAULT snowflake.next_id(243), created_at timestamptz);
CREATE INDEX ON kept (created_at);
INSERT INTO kept VALUES (NULL, '2026-01-01');
CREATE FUNCTION put_back() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.id := OLD.id; RETURN NEW; END';
CREATE TRIGGER put_back BEFORE UPDATE ON kept FOR EACH ROW EXECUTE FUNCTION put_back();
SET statement_timeout = '1 min';
CALL snowflake.backfill('kept', 'id', 'created_at', 243);
RESET statement_timeout;
DROP TRIGGER put_back ON kept;
CREATE RULE "put ""back" AS ON UPDATE TO kept DO INSTEAD NOTHING;
CALL snowflake.backfill('kept', 'id', 'created_at', 243);
DROP TABLE kept;
-- A role without the privilege cannot reserve a region and shard (origin)
SET ROLE regress_moving;
INSERT INTO snowflake.backfills (region, shard, relation, id_column, table_oid) VALUES (1, 1, 'x', 'id', 1);
RESET ROLE;
-- While backfill() updates a table, the table's triggers run with the rights of the table's owner. The owner gets no
-- other rights by such triggers, and the triggers change no setting of the caller.
GRANT USAGE ON SCHEMA moving TO regress_moving;
CREATE TABLE theirs (id bigint DEFAULT snowflake.next_id(9), created_at timestamptz DEFAULT '2026-03-01', who text);
CREATE INDEX ON theirs (created_at);
INSERT INTO theirs SELECT NULL FROM generate_series(1, 3);
CREATE FUNCTION regress_trap() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.who := current_user;
  SET work_mem = '77MB';
  IF TG_ARGV[0] <> '' THEN EXECUTE TG_ARGV[0]; END IF;
  RETURN NEW;
END
$$;
ALTER TABLE theirs OWNER TO regress_moving;
ALTER FUNCTION regress_trap OWNER TO regress_moving;
SELECT what, refusal FROM unnest(ARRAY['RESET ROLE', 'SET SESSION AUTHORIZATION DEFAULT', 'CREATE TEMPORARY TABLE evil (n integer)', 'SELECT pg_catalog.pg_read_file(''PG_VERSION'')', '']) AS what,
  LATERAL (SELECT refusal(format('CREATE OR REPLACE TRIGGER trap BEFORE UPDATE ON theirs FOR EACH ROW EXECUTE FUNCTION regress_trap(%L); SELECT snowflake.run_as(%L::regrole, ''UPDATE moving.theirs SET id = 7'')', what, 'regress_moving'))) AS r;
UPDATE theirs SET id = NULL;
RESET work_mem;
CALL snowflake.backfill('theirs', 'id', 'created_at', 9);
SELECT DISTINCT who, id IS NOT NULL AS has_it, current_setting('work_mem') <> '77MB' AS as_before, current_user = session_user AS myself FROM theirs;
-- backfill() refuses a table with a deferred trigger, because the trigger would run with the rights of the role that
-- commits
UPDATE theirs SET id = NULL;
DROP TRIGGER trap ON theirs;
CREATE CONSTRAINT TRIGGER trap AFTER UPDATE ON theirs DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION regress_trap('');
SELECT refusal($$SELECT snowflake.run_as('regress_moving'::regrole, 'UPDATE moving.theirs SET id = 7')$$);
-- backfill() refuses a role that may update the table but does not have its owner's rights, before it reserves a region
-- and shard
DROP TRIGGER trap ON theirs;
CREATE TRIGGER trap BEFORE UPDATE ON theirs FOR EACH ROW EXECUTE FUNCTION regress_trap('');
CREATE ROLE regress_guest;
GRANT USAGE ON SCHEMA moving TO regress_guest;
GRANT SELECT, UPDATE ON theirs TO regress_guest;
GRANT INSERT, UPDATE ON snowflake.backfills TO regress_guest;
SELECT count(*) AS origins FROM snowflake.backfills \gset
SET ROLE regress_guest;
SELECT refusal($$CALL snowflake.backfill('theirs', 'id', 'created_at', 8)$$);
SELECT refusal($$SELECT snowflake.run_as('regress_moving'::regrole, 'UPDATE moving.theirs SET id = 7')$$);
RESET ROLE;
SELECT count(*) = :origins AS reserved_nothing FROM snowflake.backfills;
SELECT DISTINCT who FROM theirs;
-- run_as() and query_as() fail if the role or the statement does not exist, and query_as() if the rows have other
-- columns
SELECT refusal(format('SELECT snowflake.run_as(%s)', a)) FROM unnest(ARRAY['NULL, ''SELECT 1''', '1, ''SELECT 1''', '10, NULL', '10, ''COMMIT''', '10, ''COPY theirs TO STDOUT''', '10, ''''']) AS a;
SELECT refusal($$SELECT * FROM snowflake.query_as(10, 'SELECT 1') AS r (n bigint)$$);
SELECT * FROM snowflake.query_as(10, 'SELECT 1, ''two'' UNION ALL SELECT 3, NULL') AS r (n integer, t text);
DROP OWNED BY regress_guest;
DROP ROLE regress_guest;
-- A role that may write every table or call backfill() cannot free a reserved region and shard (origin), because its
-- ids would be used again. A reserved region and shard (origin) that gave no id can be freed.
CREATE FUNCTION change(text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  done bigint;
BEGIN
  EXECUTE $1;
  GET DIAGNOSTICS done = ROW_COUNT;
  RETURN done > 0;
EXCEPTION WHEN insufficient_privilege THEN
  RETURN SQLSTATE || ' ' || (SQLERRM ~ '^cannot change or delete a row of snowflake.(backfills|late_ids)$');
END
$$;
INSERT INTO snowflake.backfills (region, shard, relation, id_column, table_oid) VALUES (1, 7, 'moving.planned', 'id', 1);
GRANT pg_write_all_data, pg_read_all_data TO regress_moving;
GRANT USAGE ON SCHEMA moving TO regress_moving;
SET ROLE regress_moving;
SELECT change('DELETE FROM snowflake.backfills WHERE region = 1'), change('DELETE FROM snowflake.late_ids'), change('UPDATE snowflake.late_ids SET id = id + 1'),
       change('UPDATE snowflake.backfills SET until = until - interval ''1 s''');
SELECT change('DELETE FROM snowflake.backfills'), change('UPDATE snowflake.backfills SET last_position = last_position - 1'),
       change('UPDATE snowflake.backfills SET shard = shard + 1'), change('UPDATE snowflake.backfills SET last_position = last_position + 1');
RESET ROLE;
REVOKE pg_write_all_data, pg_read_all_data FROM regress_moving;

SET client_min_messages = warning;
DELETE FROM snowflake.late_ids;
DROP SCHEMA moving, moving_template, moving_0, moving_1, moving_2, moving_3 CASCADE;
DELETE FROM snowflake.backfills;
DELETE FROM snowflake.adopted;
REVOKE ALL ON FUNCTION snowflake.observe_all() FROM regress_moving;
DROP ROLE regress_moving;
DROP EXTENSION snowflake_migrate;
DROP EXTENSION snowflake_shards;
