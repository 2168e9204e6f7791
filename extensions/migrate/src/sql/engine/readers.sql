CREATE OR REPLACE FUNCTION {{SCHEMA}}.time_of(id bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN CASE WHEN id BETWEEN 0 AND {{LAST_ID}} THEN (timestamp '1970-01-01 00:00:00'
    + ({{EPOCH_MS}} + (id >> {{BELOW_BITS}}) * {{TICK_MS}}) / 86400000 * interval '24 hours'
    + ({{EPOCH_MS}} + (id >> {{BELOW_BITS}}) * {{TICK_MS}}) % 86400000
      * interval '0.001 s') AT TIME ZONE 'UTC'{{ELSE snowflake_sql.refuse_id(id, NULL::timestamptz)}} END;
CREATE OR REPLACE FUNCTION {{SCHEMA}}.region_of(id bigint) RETURNS integer LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN CASE WHEN id BETWEEN 0 AND {{LAST_ID}}
              THEN (id >> {{REGION_SHIFT}} & {{LAST_REGION}})::integer{{ELSE snowflake_sql.refuse_id(id, 0)}} END;
CREATE OR REPLACE FUNCTION {{SCHEMA}}.shard_of(id bigint) RETURNS integer LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN CASE WHEN id BETWEEN 0 AND {{LAST_ID}}
              THEN (id >> {{SEQUENCE_BITS}} & {{LAST_SHARD}})::integer{{ELSE snowflake_sql.refuse_id(id, 0)}} END;
CREATE OR REPLACE FUNCTION {{SCHEMA}}.sequence_of(id bigint) RETURNS integer LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN CASE WHEN id BETWEEN 0 AND {{LAST_ID}}
              THEN (id & {{LAST_SEQUENCE}})::integer{{ELSE snowflake_sql.refuse_id(id, 0)}} END;

-- The functions min_id() and max_id() return the first and the last possible id of a time. The function
-- last_id_before() returns the last id before a time, or -1 if the time is not after the epoch. The function
-- microseconds_of() returns the microseconds from the epoch to a time. The upper limit of microseconds_of() leaves room
-- to add a time unit (tick) without an overflow of bigint.
CREATE OR REPLACE FUNCTION {{HELPERS}}.microseconds_of(at timestamptz) RETURNS bigint
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN CASE WHEN isfinite(at)
              THEN least(extract(epoch FROM at AT TIME ZONE 'UTC') * 1000000 - {{EPOCH_MS}}000,
                         9223372036000000000)::bigint END;
CREATE OR REPLACE FUNCTION {{SCHEMA}}.min_id(at timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN (SELECT CASE WHEN us >= 0 AND (us + {{TICK_US}} - 1) / {{TICK_US}} < {{TICKS}}
                      THEN (us + {{TICK_US}} - 1) / {{TICK_US}}
                           << {{BELOW_BITS}}{{ELSE snowflake_sql.refuse_time(at, 0::bigint)}} END
            FROM {{HELPERS}}.microseconds_of(at) AS us);
CREATE OR REPLACE FUNCTION {{SCHEMA}}.max_id(at timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN (SELECT CASE WHEN us >= 0 AND us / {{TICK_US}} < {{TICKS}}
                      THEN us / {{TICK_US}} << {{BELOW_BITS}}
                           | {{BELOW_MASK}}{{ELSE snowflake_sql.refuse_time(at, 0::bigint)}} END
            FROM {{HELPERS}}.microseconds_of(at) AS us);
CREATE OR REPLACE FUNCTION {{SCHEMA}}.last_id_before(at timestamptz) RETURNS bigint
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN (SELECT CASE WHEN us <= 0 OR at = '-infinity' THEN -1
                      WHEN at = 'infinity' OR us / {{TICK_US}} >= {{TICKS}} THEN {{LAST_ID}}
                      ELSE (us - 1) / {{TICK_US}} << {{BELOW_BITS}} | {{BELOW_MASK}} END
            FROM {{HELPERS}}.microseconds_of(at) AS us);
-- Returns whether since <= time < until, and can use an index on the id.
CREATE OR REPLACE FUNCTION {{SCHEMA}}.created_within(id bigint, since timestamptz, until timestamptz) RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN id > {{SCHEMA}}.last_id_before(since) AND id <= {{SCHEMA}}.last_id_before(until);

-- Returns eleven characters, which have the same order as the ids under COLLATE "C".
CREATE OR REPLACE FUNCTION {{SCHEMA}}.to_base62(id bigint) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN (SELECT CASE WHEN id >= 0 THEN string_agg(
              substr('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz',
                     (id / unit % 62)::integer + 1, 1),
              '' ORDER BY unit DESC){{ELSE snowflake_sql.refuse_negative(id)}} END
            FROM unnest('{1,62,3844,238328,14776336,916132832,56800235584,3521614606208,218340105584896,'
                        '13537086546263552,839299365868340224}'::bigint[]) AS unit);
CREATE OR REPLACE FUNCTION {{SCHEMA}}.from_base62(encoded text) RETURNS bigint
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN (SELECT CASE WHEN encoded COLLATE "C" ~ '^[0-9A-Za-z]{11}$' AND sum(digit * unit) <= 9223372036854775807
                      THEN sum(digit * unit)::bigint{{ELSE snowflake_sql.refuse_base62(encoded)}} END
            FROM unnest('{1,62,3844,238328,14776336,916132832,56800235584,3521614606208,218340105584896,'
                        '13537086546263552,839299365868340224}'::numeric[]) WITH ORDINALITY AS u (unit, place),
                 strpos('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz' COLLATE "C",
                        substr(encoded COLLATE "C", 12 - place::integer, 1)) AS at, CAST(at - 1 AS numeric) AS digit);

-- Hashes a key, such as an email address, and returns a shard number below `shards`.
CREATE OR REPLACE FUNCTION {{SCHEMA}}.shard_for(key text, shards integer) RETURNS integer
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN CASE WHEN shards BETWEEN 1 AND {{SHARDS}}
              THEN (('x' || left(encode(sha256(convert_to(key, 'UTF8')), 'hex'), 8))::bit(32)::bigint * shards
                    >> 32)::integer{{ELSE snowflake_sql.refuse_shards(shards)}} END;
CREATE OR REPLACE FUNCTION {{SCHEMA}}.shard_for(key bigint, shards integer) RETURNS integer
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN {{SCHEMA}}.shard_for(key::text, shards);
CREATE OR REPLACE FUNCTION {{SCHEMA}}.shard_for(key uuid, shards integer) RETURNS integer
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN {{SCHEMA}}.shard_for(key::text, shards);
CREATE OR REPLACE FUNCTION {{SCHEMA}}.shard_for(key text) RETURNS integer LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN {{SCHEMA}}.shard_for(key, {{SHARDS}});
CREATE OR REPLACE FUNCTION {{SCHEMA}}.shard_for(key bigint) RETURNS integer LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN {{SCHEMA}}.shard_for(key::text, {{SHARDS}});
CREATE OR REPLACE FUNCTION {{SCHEMA}}.shard_for(key uuid) RETURNS integer LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN {{SCHEMA}}.shard_for(key::text, {{SHARDS}});
