-- adopt_schemas() with the shapes of schemas that others have published, made small: pagila (a partitioned table, functions of
-- integer), danbooru (polymorphic references, arrays), AdventureWorks (several schemas, nested and materialized views),
-- old pagila (inheritance with rules), MusicBrainz (triggers with conditions on ids).
CREATE EXTENSION snowflake_migrate;
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE ROLE regress_app;
CREATE ROLE regress_report;
CREATE SCHEMA person;
CREATE SCHEMA "Sales" AUTHORIZATION regress_app;
ALTER DEFAULT PRIVILEGES FOR ROLE regress_app IN SCHEMA "Sales" GRANT SELECT ON TABLES TO regress_report;
GRANT USAGE, CREATE ON SCHEMA person TO regress_app;
SET search_path = person;

-- Makes ten tables. Table payment is partitioned by another column, and only its partitions have foreign keys.
CREATE TABLE customer (customer_id serial PRIMARY KEY, store_id smallint NOT NULL DEFAULT 1, name text, active integer DEFAULT 1);
CREATE TABLE film (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, title text, language_id integer, tag_ids integer[] DEFAULT '{}');
CREATE TABLE actor (actor_id bigserial PRIMARY KEY, name text);
CREATE TABLE film_actor (actor_id integer REFERENCES actor, film_id integer REFERENCES film, PRIMARY KEY (actor_id, film_id));
CREATE TABLE inventory (inventory_id serial PRIMARY KEY, film_id integer NOT NULL REFERENCES film);
CREATE TABLE rental (rental_id serial PRIMARY KEY, inventory_id integer NOT NULL REFERENCES inventory,
                     customer_id integer NOT NULL REFERENCES customer);
CREATE TABLE payment (payment_id serial, customer_id integer NOT NULL, rental_id integer, amount numeric, paid date NOT NULL,
                      PRIMARY KEY (paid, payment_id)) PARTITION BY RANGE (paid);
CREATE TABLE payment_1 PARTITION OF payment (FOREIGN KEY (customer_id) REFERENCES customer, FOREIGN KEY (rental_id) REFERENCES rental)
  FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');
CREATE TABLE payment_2 PARTITION OF payment (FOREIGN KEY (customer_id) REFERENCES customer)
  FOR VALUES FROM ('2026-02-01') TO ('2026-03-01');
CREATE TABLE versions (id serial PRIMARY KEY, item_type text, item integer, author_id integer, film_ids integer[]);
CREATE TABLE country (id integer PRIMARY KEY, name text);
CREATE TABLE "Sales"."Order" ("OrderID" serial PRIMARY KEY, "customerId" integer REFERENCES customer, shipped boolean);
GRANT SELECT ON "Sales"."Order" TO regress_app;
CREATE INDEX ON versions USING gin (film_ids);
INSERT INTO customer (name) SELECT 'c' || n FROM generate_series(1, 50) AS n;
INSERT INTO film (title) SELECT 'f' || n FROM generate_series(1, 50) AS n;
INSERT INTO actor (name) SELECT 'a' || n FROM generate_series(1, 50) AS n;
INSERT INTO film_actor SELECT n, n FROM generate_series(1, 50) AS n;
INSERT INTO inventory (film_id) SELECT n FROM generate_series(1, 50) AS n;
INSERT INTO rental (inventory_id, customer_id) SELECT n, n FROM generate_series(1, 50) AS n;
INSERT INTO payment (customer_id, rental_id, amount, paid) SELECT n, n, 1, '2026-01-05'::date + n FROM generate_series(1, 50) AS n;
INSERT INTO versions (item_type, item, author_id, film_ids) SELECT 'film', n, n, ARRAY[n] FROM generate_series(1, 50) AS n;
INSERT INTO "Sales"."Order" ("customerId") SELECT n FROM generate_series(1, 50) AS n;

-- Makes twenty views: nested, materialized, of several owners, with everything that can belong to a view.
CREATE VIEW film_list AS SELECT f.id AS film, title, string_agg(a.name, ', ' ORDER BY a.actor_id) AS actors
  FROM film AS f JOIN film_actor ON film_id = f.id JOIN actor AS a USING (actor_id) GROUP BY f.id;
CREATE VIEW nicer_film_list AS SELECT * FROM film_list WHERE film > 3;
CREATE VIEW film_count AS SELECT count(*) FROM nicer_film_list;
CREATE VIEW customer_list WITH (security_barrier) AS SELECT customer_id AS id, name, store_id::integer AS sid FROM customer;
CREATE VIEW active_customer AS SELECT * FROM customer WHERE active = 1 WITH LOCAL CHECK OPTION;
CREATE VIEW rental_list AS SELECT r.*, c.name, f.title
  FROM rental AS r JOIN customer_list AS c ON c.id = r.customer_id JOIN inventory USING (inventory_id) JOIN film AS f ON f.id = film_id;
CREATE VIEW payment_list AS SELECT p.*, r.inventory_id FROM payment AS p LEFT JOIN rental AS r USING (rental_id);
CREATE VIEW one_month AS SELECT payment_id, customer_id FROM payment_1;
CREATE VIEW all_ids AS SELECT id FROM film UNION SELECT actor_id FROM actor UNION ALL SELECT id FROM versions;
CREATE RECURSIVE VIEW numbers (n) AS SELECT min(id) FROM film UNION ALL SELECT n + 1 FROM numbers WHERE n < 5;
CREATE VIEW author_list AS SELECT author_id, count(*) FROM versions GROUP BY author_id;
CREATE VIEW no_ids AS SELECT title FROM film;
CREATE MATERIALIZED VIEW sales_by_film WITH (fillfactor = 80) AS
  SELECT f.id, f.title, sum(amount) AS total FROM payment_list JOIN inventory USING (inventory_id) JOIN film AS f ON f.id = film_id GROUP BY f.id;
CREATE UNIQUE INDEX sales_by_film_id ON sales_by_film (id);
CREATE INDEX ON sales_by_film (lower(title)) WHERE total > 0;
ALTER MATERIALIZED VIEW sales_by_film CLUSTER ON sales_by_film_id;
CREATE VIEW best_film AS SELECT * FROM sales_by_film ORDER BY total DESC LIMIT 10;
CREATE MATERIALIZED VIEW not_yet AS SELECT id FROM film WITH NO DATA;
CREATE VIEW by_cast AS SELECT rental_id::integer AS short FROM rental;
CREATE VIEW of_whole AS SELECT c.customer_id, (SELECT count(*) FROM rental AS r WHERE r.customer_id = c.customer_id) AS rentals FROM customer AS c;
CREATE VIEW over_all AS SELECT * FROM of_whole JOIN rental_list USING (customer_id) JOIN best_film USING (title);
SET ROLE regress_app;
CREATE VIEW "Sales"."Open orders" AS SELECT "OrderID", "customerId" AS "Customer" FROM "Sales"."Order" WHERE shipped IS NOT TRUE;
CREATE VIEW "Sales".totals AS SELECT "Customer", count(*) FROM "Sales"."Open orders" GROUP BY 1;
RESET ROLE;
CREATE FUNCTION insert_customer() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO person.customer (name) VALUES (NEW.name); RETURN NEW; END';
CREATE TRIGGER put INSTEAD OF INSERT ON customer_list FOR EACH ROW EXECUTE FUNCTION insert_customer();
CREATE RULE no_delete AS ON DELETE TO customer_list DO INSTEAD NOTHING;
COMMENT ON VIEW customer_list IS 'it''s a list';
COMMENT ON COLUMN customer_list.id IS 'the key';
COMMENT ON TRIGGER put ON customer_list IS 'writes';
COMMENT ON RULE no_delete ON customer_list IS 'keeps';
COMMENT ON INDEX sales_by_film_id IS 'for CONCURRENTLY';
COMMENT ON MATERIALIZED VIEW sales_by_film IS 'every night';
GRANT SELECT ON rental_list TO PUBLIC;
GRANT SELECT, UPDATE (name) ON customer_list TO regress_report WITH GRANT OPTION;
GRANT SELECT ON sales_by_film TO regress_report;
GRANT USAGE ON SCHEMA person, "Sales" TO regress_report;
REVOKE SELECT ON "Sales".totals FROM regress_report;
SET ROLE regress_report;
GRANT SELECT ON customer_list TO regress_app WITH GRANT OPTION;
SET ROLE regress_app;
GRANT SELECT ON customer_list TO PUBLIC;
RESET ROLE;

-- Makes triggers, rules and policies that use id columns, both enabled and disabled. Makes child tables that inherit
-- the key from a parent, or only other columns.
CREATE TABLE visit (id serial PRIMARY KEY, guest integer, day date) WITH (fillfactor = 90);
CREATE TABLE visit_1 (UNIQUE (id), CHECK (day < '2026-02-01'), FOREIGN KEY (guest) REFERENCES customer) INHERITS (visit);
CREATE TABLE visit_2 (CHECK (day >= '2026-02-01')) INHERITS (visit);
CREATE TABLE visit_3 (id integer) INHERITS (visit_2);
CREATE TABLE stamped (made date);
CREATE TABLE badge (id serial PRIMARY KEY, holder integer REFERENCES customer) INHERITS (stamped);
CREATE RULE "goes on on" AS ON INSERT TO visit WHERE NEW.day < '2026-02-01' AND NEW.id > 0 DO INSTEAD INSERT INTO visit_1 VALUES (NEW.*);
CREATE RULE off AS ON DELETE TO visit WHERE OLD.id = 1 DO INSTEAD NOTHING;
ALTER TABLE visit DISABLE RULE off;
CREATE RULE elsewhere AS ON UPDATE TO stamped WHERE EXISTS (SELECT FROM nicer_film_list) DO NOTHING;
COMMENT ON RULE "goes on on" ON visit IS 'by month';
INSERT INTO visit (guest, day) SELECT n, '2026-01-20'::date + n FROM generate_series(1, 20) AS n;
INSERT INTO visit_2 (guest, day) VALUES (21, '2026-02-20');
INSERT INTO badge (holder) VALUES (1);
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER "on of id" AFTER UPDATE OF rental_id, customer_id ON rental FOR EACH ROW EXECUTE FUNCTION nothing('a');
CREATE TRIGGER special BEFORE DELETE ON customer FOR EACH ROW WHEN (OLD.customer_id = 1) EXECUTE FUNCTION nothing();
CREATE CONSTRAINT TRIGGER later AFTER INSERT ON film DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.id > 0) EXECUTE FUNCTION nothing();
CREATE TRIGGER parted AFTER UPDATE OF payment_id ON payment FOR EACH ROW EXECUTE FUNCTION nothing();
ALTER TABLE customer ENABLE ALWAYS TRIGGER special;
ALTER TABLE payment_2 DISABLE TRIGGER parted;
COMMENT ON TRIGGER "on of id" ON rental IS 'renumbered';
COMMENT ON TRIGGER parted ON payment_1 IS 'of the partition';
ALTER TABLE badge ENABLE ROW LEVEL SECURITY;
CREATE POLICY mine ON badge AS RESTRICTIVE FOR UPDATE TO regress_app, regress_report USING (holder > 0) WITH CHECK (id > 0);
CREATE POLICY "all on it" ON badge USING (holder IN (SELECT id FROM customer_list));
COMMENT ON POLICY mine ON badge IS 'own';

-- Makes functions with variables of type integer, as in real applications
CREATE FUNCTION film_in_stock(p_film_id integer) RETURNS SETOF integer LANGUAGE sql AS 'SELECT inventory_id FROM person.inventory WHERE film_id = $1';
CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS 'DECLARE n int; BEGIN n := NEW.rental_id; RETURN NULL; END';
CREATE TRIGGER audit AFTER INSERT ON rental FOR EACH ROW EXECUTE FUNCTION audit();
CREATE FUNCTION unrelated(n integer) RETURNS integer LANGUAGE sql AS 'SELECT n';

CREATE VIEW pg_temp.described AS
  SELECT c.oid::regclass::text AS view, relowner::regrole AS owner, relkind, reloptions, relispopulated,
         (SELECT array_agg(a::text ORDER BY a::text) FROM unnest(coalesce(relacl, acldefault('r', relowner))) AS a) AS acl,
         (SELECT array_agg(concat(attname, attacl) ORDER BY attnum) FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0) AS columns,
         (SELECT array_agg(pg_get_indexdef(indexrelid) || indisclustered ORDER BY indexrelid::regclass::text) FROM pg_index WHERE indrelid = c.oid) AS indexes,
         (SELECT array_agg(pg_get_ruledef(oid) ORDER BY rulename) FROM pg_rewrite WHERE ev_class = c.oid AND rulename <> '_RETURN') AS rules,
         (SELECT array_agg(pg_get_triggerdef(oid) ORDER BY tgname) FROM pg_trigger WHERE tgrelid = c.oid) AS triggers,
         (SELECT array_agg(description ORDER BY description) FROM pg_description AS d
           WHERE d.objoid = c.oid OR d.objoid IN (SELECT indexrelid FROM pg_index WHERE indrelid = c.oid)
              OR d.objoid IN (SELECT oid FROM pg_trigger WHERE tgrelid = c.oid) OR d.objoid IN (SELECT oid FROM pg_rewrite WHERE ev_class = c.oid)) AS comments
    FROM pg_class AS c WHERE relkind IN ('v', 'm') AND relnamespace IN ('person'::regnamespace, '"Sales"'::regnamespace);
CREATE VIEW pg_temp.parts AS
  SELECT t.tgrelid::regclass::text AS relation, pg_get_triggerdef(t.oid) || tgenabled::text AS part, obj_description(t.oid, 'pg_trigger') AS comment
    FROM pg_trigger AS t WHERE NOT tgisinternal
  UNION ALL SELECT ev_class::regclass::text, pg_get_ruledef(oid) || ev_enabled::text, obj_description(oid, 'pg_rewrite') FROM pg_rewrite WHERE rulename <> '_RETURN'
  UNION ALL SELECT tablename, p::text, obj_description(o.oid, 'pg_policy') FROM pg_policies AS p JOIN pg_policy AS o ON polname = policyname;
CREATE TEMPORARY TABLE before AS TABLE pg_temp.described;
CREATE TEMPORARY TABLE parts_before AS SELECT p.* FROM pg_temp.parts AS p JOIN pg_class AS c ON c.oid = to_regclass(p.relation) WHERE relnamespace = 'person'::regnamespace;
CREATE TEMPORARY TABLE visits AS SELECT tableoid AS relation, id::bigint, guest::bigint, day FROM visit;
CREATE TEMPORARY TABLE films AS TABLE sales_by_film;
SELECT count(*) AS views, sum(cardinality(comments)) AS comments FROM before;

-- Shows the statements that adopt_schemas() would run
SET client_min_messages = notice;
\set VERBOSITY terse
CALL snowflake.adopt_schemas('{person,Sales}', 5);
\set VERBOSITY default
CALL snowflake.adopt_schemas('{person,Sales}', 5, rewrite => true, dry_run => true);
SELECT count(*) AS nothing_changed FROM (TABLE pg_temp.described EXCEPT TABLE before) AS s;
CALL snowflake.adopt_schemas('{person,Sales}', 5, rewrite => true);
-- After adopt_schemas() the views have all their properties, and every column that holds ids is bigint
SELECT * FROM (TABLE pg_temp.described EXCEPT TABLE before) AS s;
SELECT count(*) AS views FROM pg_temp.described;
SELECT count(*) AS parts, count(comment) AS comments FROM parts_before;
SELECT * FROM (TABLE parts_before EXCEPT TABLE pg_temp.parts) AS s;
SELECT r.* FROM snowflake.referring_columns(snowflake.keys_of_schemas('{person,Sales}', '{}', '{snowflake}')) AS r
 WHERE snowflake.wide_type((snowflake.attribute_of(r)).atttypid) IS NOT NULL;
SELECT attrelid::regclass, attname, format_type(atttypid, NULL) FROM pg_attribute
 WHERE attrelid IN ('versions'::regclass, 'film'::regclass, 'payment_1'::regclass, 'customer'::regclass, 'visit_3'::regclass, 'badge'::regclass) AND attnum > 0
 ORDER BY 1, attnum;
SELECT attrelid::regclass::text, pg_get_expr(adbin, adrelid) FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
 WHERE adrelid IN (SELECT snowflake.with_children('visit')) AND attname = 'id' ORDER BY 1;
SELECT count(*) AS visits FROM (SELECT tableoid, id, guest, day FROM visit INTERSECT TABLE visits) AS s;
SELECT relation, attribute, problem FROM snowflake.adopted_columns() ORDER BY 1;
SELECT count(*) AS as_before FROM (SELECT id, title, total FROM films INTERSECT SELECT id, title, total FROM sales_by_film) AS s;

-- After adopt_schemas() new ids can be stored in every table and through every view
INSERT INTO film (title) VALUES ('new') RETURNING snowflake.shard_of(id) AS shard \gset
INSERT INTO inventory (film_id) SELECT max(id) FROM film;
INSERT INTO active_customer (name) VALUES ('new');
INSERT INTO payment (customer_id, paid) SELECT max(customer_id), '2026-02-03' FROM customer;
INSERT INTO versions (item_type, item, author_id, film_ids) SELECT 'film', max(id), max(id), array_agg(id) FROM film;
INSERT INTO customer_list (id) VALUES (1);
DELETE FROM customer_list;
INSERT INTO visit (guest, day) VALUES (1, '2026-01-02'), (1, '2026-02-02');
INSERT INTO visit_3 (guest, day) VALUES (1, '2026-03-02');
SELECT tableoid::regclass, snowflake.shard_of(id) FROM visit WHERE id > 1000 ORDER BY id;
REFRESH MATERIALIZED VIEW CONCURRENTLY sales_by_film;
SELECT (SELECT count(*) FROM payment WHERE snowflake.shard_of(payment_id) = 5) AS payments, (SELECT count(*) FROM one_month) AS one_month,
       (SELECT count(*) FROM active_customer) AS customers, (SELECT count(*) FROM versions WHERE film_ids @> ARRAY[(SELECT max(id) FROM film)]) AS versions;
SET ROLE regress_report;
SELECT count(*) FROM customer_list;
SELECT count(*) FROM "Sales".totals;
RESET ROLE;

-- A second call of adopt_schemas() changes no column
CALL snowflake.adopt_schemas('{person,Sales}', 5);
-- If an upgrade of the application changes columns back, another call of adopt_schemas() adopts these columns again
SET client_min_messages = warning;
ALTER TABLE rental ALTER COLUMN rental_id SET DEFAULT nextval('rental_rental_id_seq');
ALTER TABLE actor RENAME TO player;
CREATE TABLE review (id bigserial PRIMARY KEY, film_id integer REFERENCES film);
SELECT relation, attribute, problem FROM snowflake.adopted_columns() WHERE problem IS NOT NULL ORDER BY 1;
SET ROLE regress_report;
SELECT minting, reason, advice FROM snowflake.health();
RESET ROLE;
CALL snowflake.adopt_schemas('{person}', 5, rewrite => true, drop_sequence => true);
SELECT relation, attribute, problem FROM snowflake.adopted_columns() WHERE problem IS NOT NULL ORDER BY 1;
SELECT count(*) AS sequences FROM pg_class WHERE relname IN ('rental_rental_id_seq', 'review_id_seq');
DELETE FROM snowflake.adopted WHERE relation = 'person.actor';
SELECT minting, reason FROM snowflake.health();

-- If a schema cannot be adopted safely, adopt_schemas() fails with one sentence and changes nothing
CREATE FUNCTION refusal(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  detail text; hint text;
BEGIN
  EXECUTE statement;
  RETURN 'not refused';
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
  RETURN concat_ws(' | ', SQLERRM, detail, hint);
END
$$;
CREATE SCHEMA odd;
SET search_path = odd, person;
CREATE FUNCTION of_integer(integer) RETURNS integer IMMUTABLE LANGUAGE sql AS 'SELECT $1';
CREATE FUNCTION refused(definition text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  result text;
BEGIN
  CREATE TABLE one (id serial PRIMARY KEY, n integer);
  CREATE VIEW shows AS SELECT id FROM one;
  EXECUTE definition;
  result := refusal($c$CALL snowflake.adopt('one', 5, rewrite => true)$c$);
  RAISE SQLSTATE 'BACK0';
EXCEPTION WHEN SQLSTATE 'BACK0' THEN
  RETURN result;
END
$$;
-- CREATE PUBLICATION warns about wal_level, in other words since PostgreSQL 17.
SET client_min_messages = error;
SELECT refused(d) FROM unnest(ARRAY['CREATE POLICY mine ON one USING (of_integer(id) > 5)', 'CREATE TRIGGER t AFTER UPDATE ON one FOR EACH ROW WHEN (of_integer(NEW.id) > 5) EXECUTE FUNCTION person.audit()',
  'ALTER TABLE one ADD COLUMN twice integer GENERATED ALWAYS AS (2 * id) STORED', 'CREATE RULE r AS ON UPDATE TO film WHERE EXISTS (SELECT of_integer(id) FROM shows) DO NOTHING',
  'CREATE FUNCTION f() RETURNS bigint LANGUAGE sql BEGIN ATOMIC; SELECT max(id) FROM shows; END', 'CREATE FUNCTION f(shows) RETURNS integer LANGUAGE sql AS ''SELECT 1''',
  'CREATE TABLE of_rows (r shows)', 'CREATE TABLE other (id integer); CREATE TABLE child () INHERITS (one, other)', 'CREATE TABLE child () INHERITS (one); ALTER TABLE child OWNER TO regress_report',
  'CREATE DOMAIN narrow AS integer; CREATE TABLE two (r narrow REFERENCES one)',
  'CREATE TABLE spread (one_id integer REFERENCES one) PARTITION BY LIST ((one_id % 2))',
  'CREATE TABLE spread (one_id integer NOT NULL REFERENCES one, n integer NOT NULL, UNIQUE (one_id, n)) PARTITION BY LIST (n); CREATE TABLE spread_1 PARTITION OF spread DEFAULT; ALTER TABLE spread_1 REPLICA IDENTITY USING INDEX spread_1_one_id_n_key',
  'CREATE INDEX ON one (of_integer(id))', 'CREATE TABLE child (CHECK (of_integer(id) > 0)) INHERITS (one)', 'CREATE VIEW calls AS SELECT of_integer(id) FROM shows', 'CREATE PUBLICATION regress_p FOR TABLE one', 'CREATE PUBLICATION regress_p FOR TABLE one (id) WHERE (id > 0)',
  'ALTER VIEW shows OWNER TO regress_report', 'CREATE TEMPORARY VIEW mine AS SELECT id FROM one',
  'CREATE MATERIALIZED VIEW set AS SELECT id, ''''::text AS t FROM one; ALTER MATERIALIZED VIEW set ALTER COLUMN t SET STORAGE external',
  'CREATE MATERIALIZED VIEW set AS SELECT id FROM one; ALTER MATERIALIZED VIEW set ALTER COLUMN id SET STATISTICS 200',
  'CREATE MATERIALIZED VIEW set AS SELECT id FROM one; CREATE INDEX set_id ON set ((id + 1)); ALTER INDEX set_id ALTER COLUMN 1 SET STATISTICS 200',
  'CREATE MATERIALIZED VIEW set AS SELECT id, n FROM one; CREATE STATISTICS odd ON id, n FROM set', 'ALTER VIEW shows ALTER COLUMN id SET DEFAULT 7',
  'CREATE VIEW other AS SELECT n FROM one; CREATE FUNCTION g() RETURNS integer LANGUAGE sql BEGIN ATOMIC; SELECT n FROM other; END']) AS d;
RESET client_min_messages;
CREATE TABLE by_id (id serial PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE by_id_1 PARTITION OF by_id DEFAULT;
SELECT refusal(format('CALL snowflake.adopt(%L, 5, ''id'', rewrite => true)', t)) FROM unnest(ARRAY['by_id', 'by_id_1', 'visit_3']) AS t;
SELECT refusal($$CALL snowflake.adopt_schemas('{absent}', 5)$$) UNION ALL SELECT refusal($$CALL snowflake.adopt_schemas('{}', 5)$$)
 UNION ALL SELECT refusal($$CALL snowflake.adopt_schemas('{odd}', NULL)$$);
CALL snowflake.adopt_schemas('{odd}', 5, rewrite => true);

-- Tables that logical replication publishes are adopted if the subscribers can store bigint. adopt_schemas() lists
-- columns that hold ids of several tables (polymorphic references) and are in other tables.
SET client_min_messages = error;
CREATE TABLE notes (id serial PRIMARY KEY);
CREATE TABLE issues (id bigint PRIMARY KEY, reportable_type text, reportable_id integer, note_ids smallint[], "userId" integer, paid integer);
CREATE TABLE article (id serial PRIMARY KEY, revision integer);
CREATE TABLE revision (article_id integer REFERENCES article, n integer, PRIMARY KEY (article_id, n));
ALTER TABLE article ADD FOREIGN KEY (id, revision) REFERENCES revision DEFERRABLE;
CREATE TABLE seat (room integer, id serial, PRIMARY KEY (room, id));
CREATE FOREIGN DATA WRAPPER regress_wrapper;
CREATE SERVER regress_remote FOREIGN DATA WRAPPER regress_wrapper;
CREATE TABLE readers (article_id integer, country text) PARTITION BY LIST (country);
CREATE FOREIGN TABLE remote_readers PARTITION OF readers DEFAULT SERVER regress_remote;
CREATE PUBLICATION regress_p FOR TABLE notes;
SET client_min_messages = notice;
CALL snowflake.adopt('notes', 5, rewrite => true, published => true, drop_sequence => true);
CALL snowflake.adopt_schemas('{odd}', 5, rewrite => true, leave_out => '{by_id}');
SELECT attname, format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = 'issues'::regclass AND attnum > 0;
-- A primary key that is part of a composite foreign key is adopted
SELECT relation, attribute, problem FROM snowflake.adopted_columns() WHERE relation ~ 'article';
-- A partition that is a foreign table is changed together with its parent
SELECT format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = 'remote_readers'::regclass AND attname = 'article_id';

-- A schema whose name begins with snowflake_ is adopted. Keys whose names look like references, such as user_id, become
-- bigint. Columns whose numeric type cannot store every id exactly are listed. A column is also listed if its view
-- calls a function of integer.
CREATE SCHEMA snowflake_shop;
CREATE TABLE snowflake_shop.users (id serial PRIMARY KEY);
CREATE TABLE snowflake_shop.profiles (user_id integer PRIMARY KEY CHECK (user_id < 2000000000), follower_id numeric(9), score_id real, fan_id numeric, author_id integer);
CREATE VIEW snowflake_shop.authors AS SELECT of_integer(author_id) FROM snowflake_shop.profiles;
-- Two columns use one sequence. Tests an identity column whose sequence another column uses.
CREATE TABLE snowflake_shop.orders (id integer PRIMARY KEY DEFAULT nextval('snowflake_shop.users_id_seq'));
CREATE TABLE snowflake_shop.carts (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
CREATE TABLE snowflake_shop.bills (number integer DEFAULT nextval('snowflake_shop.carts_id_seq'));
SELECT refusal($$CALL snowflake.adopt_schemas('{snowflake_shop}', 5, rewrite => true, dry_run => true)$$);
DROP TABLE snowflake_shop.bills;
CALL snowflake.adopt_schemas('{snowflake_shop}', 5, rewrite => true, drop_sequence => true);
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'snowflake_shop.profiles'::regclass AND attnum > 0;
SELECT relation, attribute, problem FROM snowflake.adopted_columns() WHERE relation ~ 'shop' ORDER BY 1;
SELECT to_regclass('snowflake_shop.users_id_seq');
SELECT refusal($$CALL snowflake.adopt_schemas('{odd}', 5, leave_out => '{by_id,NULL}')$$)
 UNION ALL SELECT refusal($$CALL snowflake.adopt_schemas('{odd,NULL}', 5)$$);
-- The caller of adopt_schemas() needs the rights of every role that granted privileges on a view
CREATE TABLE granted (id serial PRIMARY KEY);
CREATE VIEW shown AS SELECT id FROM granted;
ALTER TABLE granted OWNER TO regress_app;
ALTER VIEW shown OWNER TO regress_app;
GRANT SELECT ON shown TO regress_report WITH GRANT OPTION;
GRANT USAGE, CREATE ON SCHEMA odd TO regress_app, regress_report;
SET ROLE regress_report;
GRANT SELECT ON shown TO PUBLIC;
RESET ROLE;
GRANT EXECUTE ON FUNCTION snowflake.observe(bigint) TO regress_app;
SET ROLE regress_app;
SELECT refusal($$CALL snowflake.adopt('odd.granted', 5, rewrite => true, dry_run => true)$$);
RESET ROLE;

-- Constants in views, policies and indexes keep their values under other settings of the session
CREATE TABLE dated (id serial PRIMARY KEY, at timestamptz, f float8);
CREATE POLICY before_noon ON dated USING (id > 0 AND at < '2020-01-01 12:00+05:30'::timestamptz);
CREATE VIEW dated_shown AS SELECT id, '0.30000000000000004'::float8 AS f FROM dated WHERE at < '2020-01-01 12:00+05:30'::timestamptz;
CREATE INDEX dated_part ON dated (id) WHERE at < '2020-01-01 12:00+05:30'::timestamptz;
CREATE TEMPORARY TABLE constants AS SELECT qual, pg_get_viewdef('dated_shown') AS view, pg_get_indexdef('dated_part'::regclass) AS index FROM pg_policies WHERE policyname = 'before_noon';
-- In an open session, the function of a trigger and a variable with %TYPE were compiled for the old type of the column
CREATE TABLE dated_log (dated_id bigint);
CREATE FUNCTION log_dated() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO odd.dated_log VALUES (NEW.id); RETURN NULL; END';
CREATE TRIGGER log_dated AFTER INSERT ON dated FOR EACH ROW EXECUTE FUNCTION log_dated();
INSERT INTO dated DEFAULT VALUES;
CREATE FUNCTION add_dated() RETURNS bigint LANGUAGE plpgsql AS
  'DECLARE got odd.dated.id%TYPE; BEGIN INSERT INTO odd.dated DEFAULT VALUES RETURNING id INTO got; RETURN got; END';
CREATE PROCEDURE add_dated_twice() LANGUAGE plpgsql AS
  'DECLARE got odd.dated.id%TYPE; BEGIN FOR n IN 1 .. 2 LOOP INSERT INTO odd.dated DEFAULT VALUES RETURNING id INTO got; END LOOP; END';
SELECT count(add_dated());
CALL add_dated_twice();
SET datestyle = 'sql, mdy'; SET timezone = 'Asia/Kolkata'; SET extra_float_digits = 0;
CALL snowflake.adopt('dated', 5, rewrite => true, drop_sequence => true);
RESET datestyle; RESET timezone; RESET extra_float_digits;
SELECT count(*) AS same FROM (SELECT qual, pg_get_viewdef('dated_shown'), pg_get_indexdef('dated_part'::regclass) FROM pg_policies WHERE policyname = 'before_noon' INTERSECT TABLE constants) AS s;
INSERT INTO dated DEFAULT VALUES RETURNING snowflake.shard_of(id);
SELECT snowflake.shard_of(add_dated());
CALL add_dated_twice();
SELECT count(*) AS logged FROM dated JOIN dated_log ON dated_id = id;
-- adopt_schemas() lists checks, indexes, partitions, functions and defaults that would reject new ids
CREATE TABLE bounded (id bigserial PRIMARY KEY CHECK (id < 1000000)) PARTITION BY RANGE (id);
CREATE TABLE bounded_1 PARTITION OF bounded FOR VALUES FROM (1) TO (100000);
CREATE INDEX bounded_narrow ON bounded ((id::integer));
CREATE TABLE tree (id serial PRIMARY KEY, root integer NOT NULL DEFAULT currval('tree_id_seq') REFERENCES tree);
CREATE FUNCTION last_bounded() RETURNS bigint LANGUAGE sql AS 'SELECT currval(''odd.bounded_id_seq'')';
CALL snowflake.adopt('bounded', 5, drop_sequence => true, dry_run => true);
CALL snowflake.adopt('tree', 5, rewrite => true, drop_sequence => true, dry_run => true);
-- A sequence that belongs to another table keeps its owner. The sequence is listed if a program could still use it.
CREATE TABLE with_sequence (id integer GENERATED ALWAYS AS IDENTITY, n serial);
ALTER TABLE with_sequence ALTER n DROP DEFAULT;
CREATE TABLE without_sequence (id integer PRIMARY KEY DEFAULT nextval('with_sequence_id_seq'));
CREATE TABLE beside_sequence (id integer PRIMARY KEY DEFAULT nextval('with_sequence_n_seq'));
CALL snowflake.adopt('without_sequence', 5, rewrite => true, drop_sequence => true);
CALL snowflake.adopt('beside_sequence', 5, rewrite => true, drop_sequence => true);
SELECT pg_get_serial_sequence('with_sequence', c) FROM unnest('{id,n}'::text[]) AS c;
-- ALTER TABLE would enable disabled triggers of a foreign key, and would build an invalid index again
CREATE TABLE parent (id serial PRIMARY KEY);
CREATE TABLE child (parent_id integer REFERENCES parent);
ALTER TABLE child DISABLE TRIGGER ALL;
SELECT refusal($$CALL snowflake.adopt('parent', 5, rewrite => true)$$);
ALTER TABLE child ENABLE TRIGGER ALL;
INSERT INTO parent DEFAULT VALUES;
INSERT INTO child VALUES (1), (1);
CREATE UNIQUE INDEX CONCURRENTLY twice ON child ((parent_id % 2));
SELECT refusal($$CALL snowflake.adopt('parent', 5, rewrite => true)$$);

-- All lock waits of a transaction of adopt_schemas() end at the same time (deadline). After the deadline a statement
-- gets only locks that no other session holds.
CREATE TABLE waits (n serial, at_most interval);
CREATE FUNCTION run_until(that_lock boolean, until timestamptz) RETURNS void LANGUAGE sql AS $$
  SELECT snowflake.run_plan(ARRAY(SELECT (CASE WHEN that_lock THEN 'waits'::regclass END, quote_ident(current_user)::regrole, s)::snowflake.step
    FROM unnest(ARRAY['INSERT INTO odd.waits (at_most) VALUES (current_setting(''lock_timeout'')::interval)', 'SELECT pg_sleep(0.01)',
                      'INSERT INTO odd.waits (at_most) VALUES (current_setting(''lock_timeout'')::interval)']) AS s), that_lock, until)
$$;
SELECT run_until(l, clock_timestamp() + '1 h') FROM unnest(ARRAY[true, false]) AS l;
SELECT run_until(l, clock_timestamp()) FROM unnest(ARRAY[true, false]) AS l;
SELECT at_most <= '1 h' AND at_most > '50 min' AS the_rest, at_most < lag(at_most) OVER (ORDER BY n) AS shared,
       CASE WHEN at_most < '1 min' THEN at_most END AS then FROM waits ORDER BY n;
SET client_min_messages = warning;
DROP PUBLICATION regress_p;
DELETE FROM snowflake.adopted;
DROP SCHEMA odd, person, "Sales", snowflake_shop CASCADE;
DROP FOREIGN DATA WRAPPER regress_wrapper CASCADE;
DROP OWNED BY regress_app, regress_report;
DROP ROLE regress_app, regress_report;
DROP EXTENSION snowflake_migrate;
