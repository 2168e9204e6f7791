-- Raises errors with the same texts as the extension.

CREATE OR REPLACE FUNCTION snowflake_sql.refusal(
  cause text, OUT state text, OUT message text, OUT reason text, OUT advice text)
  LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
  SELECT v.state, v.message, v.reason, v.advice
    FROM (VALUES
      ('standby', '25006', 'cannot execute %s during recovery', 'standby', 'Connect to the primary server.'),
      ('read_only_by_default', '25006', 'cannot execute %s in a read-only transaction',
       '"default_transaction_read_only" is on',
       'If this server may write again, set "default_transaction_read_only" to off.'),
      ('read_only_transaction', '25006', 'cannot execute %s in a read-only transaction', NULL,
       'Use a read-write transaction.'),
      ('clock_before_epoch', '55000', 'the clock is before the epoch of the ids', 'clock before the epoch of the ids',
       'Correct the clock.'),
      ('layout_exhausted', '2200H', 'the id layout has no time values left', 'id layout has no time values left',
       'Move the database to a layout with more time bits or a later epoch.'),
      ('clock_jumped', '55000', 'the clock jumped ahead by %s', 'clock jumped ahead',
       'If the clock is wrong, correct the clock. If the clock is right, run SELECT snowflake.accept_clock().'),
      ('mark_lost', '55000', 'the high-water mark (sequence snowflake.high_water) of this database is lost',
       'high-water mark (sequence snowflake.high_water) lost',
       'Run SELECT snowflake.set_mark(...) with a time after every id of this database.'),
      ('mark_ahead', '55000', 'the clock is behind the high-water mark (sequence snowflake.high_water)',
       'high-water mark (sequence snowflake.high_water) ahead of the clock',
       'Check the time synchronization. If the mark is wrong, run SELECT snowflake.set_mark(...) with a time after '
       'every id.'),
      ('clock_behind', '55000', 'the clock is behind the ids of shard %s', 'clock behind the ids',
       'Check the time synchronization. Minting resumes automatically when the clock has caught up.'),
      ('waited_too_long', '55000', 'no id of shard %s was available in time', NULL,
       'Spread the load over more shards, or raise "snowflake.max_wait".'),
      ('id_ahead', '55000', 'id %s is too far ahead of the clock', NULL, 'Compare the clocks of the servers.')
    ) AS v (cause, state, message, reason, advice)
   WHERE v.cause = $1
$$;

CREATE OR REPLACE FUNCTION snowflake_sql.refuse(cause text, subject text, detail text, hint text DEFAULT NULL)
  RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  r record;
BEGIN
  SELECT * INTO r FROM snowflake_sql.refusal(cause);
  RAISE EXCEPTION USING ERRCODE = r.state, MESSAGE = replace(r.message, '%s', coalesce(subject, '')),
    DETAIL = detail, HINT = coalesce(hint, r.advice);
END
$$;

CREATE OR REPLACE FUNCTION snowflake_sql.refuse_argument(state text, message text, detail text, hint text) RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message, DETAIL = detail, HINT = hint;
END
$$;

CREATE OR REPLACE FUNCTION snowflake_sql.refuse_id(id bigint, of_type anyelement) RETURNS anyelement
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'numeric_value_out_of_range', MESSAGE = format('%s is not an id of this layout', id),
    DETAIL = 'Ids of layout {{BITS}} are numbers from 0 to {{LAST_ID}}.',
    HINT = 'Pass an id that was minted with this layout.';
END
$$;

CREATE OR REPLACE FUNCTION snowflake_sql.refuse_time(at timestamptz, of_type anyelement) RETURNS anyelement
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO'
AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'datetime_field_overflow',
    MESSAGE = format('timestamp "%s" is out of range for ids', at),
    DETAIL = format('Layout {{BITS}} covers times from %s up to (not including) %s.',
                    snowflake_sql.time_at({{EPOCH_MS}}), snowflake_sql.time_at({{END_MS}})),
    HINT = 'Pass a timestamp that the layout covers.';
END
$$;

CREATE OR REPLACE FUNCTION snowflake_sql.refuse_negative(id bigint) RETURNS text
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'numeric_value_out_of_range', MESSAGE = format('%s is out of range for ids', id),
    DETAIL = 'Text forms exist for ids from 0 to 9223372036854775807.', HINT = 'Pass an id; ids are never negative.';
END
$$;

CREATE OR REPLACE FUNCTION snowflake_sql.refuse_shards(shards integer) RETURNS integer
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = format('invalid number of shards: "%s"', shards),
    DETAIL = 'Layout {{BITS}} has {{SHARDS}} shards.', HINT = 'Pass a number from 1 to {{SHARDS}}.';
END
$$;

-- Raises the error for an invalid text form of an id. `symbols` are the characters that are valid in the text form.
CREATE OR REPLACE FUNCTION snowflake_sql.refuse_form(encoded text, symbols text, length integer, form text,
                                                     written text, maker text) RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  before CONSTANT text := substring(encoded FROM format('^[%s]*', symbols));
  characters CONSTANT integer := length(replace(encoded, '-', ''));
BEGIN
  IF before <> encoded THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_text_representation',
      MESSAGE = format('invalid character "%s" at position %s of a %s', substr(encoded, length(before) + 1, 1),
                       length(before) + 1, form),
      DETAIL = written, HINT = format('Pass a result of %s.', maker);
  ELSIF characters <> length THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_text_representation',
      MESSAGE = format('a %s cannot have %s character%s', form, characters,
                       CASE characters WHEN 1 THEN '' ELSE 's' END),
      DETAIL = written, HINT = format('Pass a result of %s.', maker)
        || CASE WHEN form = 'base62 id' AND characters BETWEEN 1 AND length
                THEN format(' If another encoder created the text, pad it with zeros: lpad(text, %s, ''0'').',
                            length) ELSE '' END;
  END IF;
  RAISE EXCEPTION USING ERRCODE = 'numeric_value_out_of_range', MESSAGE = format('%s is out of range', form),
    DETAIL = written, HINT = format('Pass a result of %s.', maker);
END
$$;

-- refuse_base62() is VOLATILE, so that the planner does not call it. In CASE WHEN condition THEN f(constant) END, the
-- planner of PostgreSQL 18 calls an IMMUTABLE f() if the condition contains sum(). The planner evaluates a CASE
-- condition first if the condition contains only constants and no aggregate. If the condition is false, the planner
-- removes the call after THEN. The planner never calls refuse_id() too early, because the CASE conditions before its
-- calls contain no aggregate. So refuse_id() can be IMMUTABLE.
CREATE OR REPLACE FUNCTION snowflake_sql.refuse_base62(encoded text) RETURNS bigint
  LANGUAGE plpgsql VOLATILE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM snowflake_sql.refuse_form(encoded COLLATE "C", '0-9A-Za-z', 11, 'base62 id',
    'The text has 11 characters 0-9, A-Z and a-z, from 00000000000 to AzL8n0Y58m7.', 'snowflake.to_base62(id)');
END
$$;

-- Times and spans, for people.
CREATE OR REPLACE FUNCTION snowflake_sql.time_at(ms bigint) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO'
AS $$
  SELECT CASE WHEN ms >= 9224318016000000 THEN 'the far future'
              ELSE ((timestamp '1970-01-01 00:00:00' + ms / 86400000 * interval '24 hours'
                     + ms % 86400000 * interval '0.001 s') AT TIME ZONE 'UTC')::text END
$$;
CREATE OR REPLACE FUNCTION snowflake_sql.span(ms bigint) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
  SELECT CASE WHEN ms < 10000 THEN ms || ' ms' WHEN ms < 600000 THEN round(ms / 1000.0, 1) || ' s'
              WHEN ms < 36000000 THEN round(ms / 60000.0, 1) || ' min'
              WHEN ms < 864000000 THEN round(ms / 3600000.0, 1) || ' h'
              ELSE round(ms / 86400000.0, 1) || ' days' END
$$;
