-- Measures the costs of text forms and UUIDs of ids. The measured ids have 18 digits, like ids of today. A table
-- contains the ids in every form, so that converting a form to an id is measured without the opposite conversion.

CREATE EXTENSION snowflake_alias;
CREATE TABLE forms AS
  SELECT id, now() AS t, id::text AS decimal, snowflake.to_base62(id) AS base62, snowflake.to_base32(id) AS base32,
         snowflake.to_uuid(id) AS uuid, snowflake.to_ulid(id) AS ulid, snowflake.alias(id, 'bench') AS alias,
         snowflake.token(id, 'bench') AS token
    FROM generate_series(1, :rows) i, LATERAL (SELECT 499712025023222784 + i * 1000003::bigint) s (id);
VACUUM ANALYZE forms;

INSERT INTO bench.subject (name, metric, expression, rows) VALUES
  ('(a column)', 'ns', 'id', :rows),
  ('C: shift and mask', 'ns', 'bench.field(id)', :rows),
  ('C: 16 bytes', 'ns', 'bench.bytes(id)', :rows),
  ('min_id', 'ns', 'snowflake.min_id(t)', :rows),
  ('id::text', 'ns', 'id::text', :rows),
  ('gen_random_uuid', 'ns', 'gen_random_uuid()', :rows),
  ('to_base62', 'ns', 'snowflake.to_base62(id)', :rows),
  ('to_base32', 'ns', 'snowflake.to_base32(id)', :rows),
  ('to_base32, checked', 'ns', 'snowflake.to_base32(id, true)', :rows),
  ('to_uuid', 'ns', 'snowflake.to_uuid(id)', :rows),
  ('to_ulid', 'ns', 'snowflake.to_ulid(id)', :rows),
  ('alias', 'ns', 'snowflake.alias(id, ''bench'')', :rows),
  ('token', 'ns', 'snowflake.token(id, ''bench'')', :rows),
  ('text::bigint', 'ns', 'decimal::bigint', :rows),
  ('from_base62', 'ns', 'snowflake.from_base62(base62)', :rows),
  ('from_base32', 'ns', 'snowflake.from_base32(base32)', :rows),
  ('from_uuid', 'ns', 'snowflake.from_uuid(uuid)', :rows),
  ('from_ulid', 'ns', 'snowflake.from_ulid(ulid)', :rows),
  ('from_alias', 'ns', 'snowflake.from_alias(alias, ''bench'')', :rows),
  ('from_token', 'ns', 'snowflake.from_token(token, ''bench'')', :rows);

CALL bench.measure_calls(current_setting('bench.runs')::int, '(SELECT * FROM forms LIMIT %s)');
