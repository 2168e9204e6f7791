-- Functions that decoder_sql() prints in addition to readers.sql. For invalid input, the functions of this file return
-- null, but the functions of api.sql raise an error.

CREATE OR REPLACE FUNCTION {{SCHEMA}}.decode(id bigint, OUT created_at timestamptz, OUT region integer,
                                             OUT shard integer, OUT sequence integer)
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  BEGIN ATOMIC
    SELECT {{SCHEMA}}.time_of(id), {{SCHEMA}}.region_of(id), {{SCHEMA}}.shard_of(id), {{SCHEMA}}.sequence_of(id); END;

-- Accepts Crockford's base32 with its alternative symbols: thirteen symbols, and one check symbol if requested.
CREATE OR REPLACE FUNCTION {{HELPERS}}.plain_base32(encoded text) RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN translate(upper(encoded COLLATE "C"), 'OIL-', '011');
CREATE OR REPLACE FUNCTION {{SCHEMA}}.from_base32(encoded text, check_symbol boolean DEFAULT false) RETURNS bigint
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN (SELECT CASE WHEN plain ~ CASE WHEN check_symbol THEN '^[0-7][0-9A-HJKMNP-TV-Z]{12}[0-9A-HJKMNP-Z*~$=]$'
                                        ELSE '^[0-7][0-9A-HJKMNP-TV-Z]{12}$' END
                       AND (NOT check_symbol
                            OR number % 37 = strpos('0123456789ABCDEFGHJKMNPQRSTVWXYZ*~$=U', substr(plain, 14)) - 1)
                      THEN number END
            FROM CAST({{HELPERS}}.plain_base32(encoded) COLLATE "C" AS text) AS plain,
                 LATERAL (SELECT bit_or((strpos('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(plain, n, 1)) - 1)::bigint
                                        << 5 * (13 - n))
                            FROM generate_series(1, 13) AS n) AS s (number));

-- A UUID from to_uuid() contains the time in milliseconds, the other bits of the id, and a hash of the id.
CREATE OR REPLACE FUNCTION {{SCHEMA}}.from_uuid(encoded uuid) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN (SELECT CASE WHEN hex ~ '^.{12}7...[89ab]' AND ms >= 0 AND ms % {{TICK_MS}} = 0
                       AND ms / {{TICK_MS}} < {{TICKS}} AND rest >> {{BELOW_BITS}} = 0
                       AND div((ms / {{TICK_MS}} << {{BELOW_BITS}} | rest) * 11400714819323198485
                               % 18446744073709551616, 17179869184) = low & 1073741823
                      THEN ms / {{TICK_MS}} << {{BELOW_BITS}} | rest END
            FROM CAST(replace(encoded::text, '-', '') AS text) AS hex,
                 CAST(('x' || left(hex, 12))::bit(48)::bigint - {{EPOCH_MS}} AS bigint) AS ms,
                 CAST(('x' || substr(hex, 17))::bit(64)::bigint AS bigint) AS low,
                 CAST(('x' || substr(hex, 14, 3))::bit(12)::bigint << 32 | (low >> 30 & 4294967295) AS bigint) AS rest);
CREATE OR REPLACE FUNCTION {{SCHEMA}}.from_ulid(encoded text) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN (SELECT CASE WHEN plain ~ '^[0-7][0-9A-HJKMNP-TV-Z]{25}$'
                      THEN {{SCHEMA}}.from_uuid((lpad(to_hex(substr(bits, 3, 64)::bit(64)::bigint), 16, '0')
                                                 || lpad(to_hex(substr(bits, 67)::bit(64)::bigint), 16, '0'))::uuid) END
            FROM CAST({{HELPERS}}.plain_base32(encoded) COLLATE "C" AS text) AS plain,
                 LATERAL (SELECT string_agg((strpos('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(plain, n, 1))
                                             - 1)::bit(5)::text, '' ORDER BY n)
                            FROM generate_series(1, 26) AS n) AS s (bits));
