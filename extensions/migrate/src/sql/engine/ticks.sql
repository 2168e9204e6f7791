-- Some functions of this file have no search_path setting, because a setting for each function would double the time of
-- a call. Callers such as open_tick() and the administration functions set search_path.

CREATE OR REPLACE FUNCTION snowflake_sql.clock_ms() RETURNS bigint
  LANGUAGE sql VOLATILE
AS $$
  SELECT (date_part('epoch', clock_timestamp()) * 1000000)::bigint / 1000
$$;

-- Raises the error of a read-only transaction. During recovery all transactions are read-only.
CREATE OR REPLACE FUNCTION snowflake_sql.refuse_read_only(caller text) RETURNS void
  LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  IF pg_is_in_recovery() THEN
    PERFORM snowflake_sql.refuse('standby', caller, 'This server is a standby.');
  END IF;
  PERFORM snowflake_sql.refuse(
    CASE WHEN EXISTS (SELECT FROM pg_settings WHERE name = 'default_transaction_read_only' AND setting = 'on'
                         AND source IN ('configuration file', 'command line'))
           THEN 'read_only_by_default' ELSE 'read_only_transaction' END,
    caller, 'The function may have to write the sequence snowflake.high_water.');
END
$$;

CREATE OR REPLACE FUNCTION snowflake_sql.check_call(caller text) RETURNS void
  LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  IF current_setting('transaction_read_only') <> 'off' THEN
    PERFORM snowflake_sql.refuse_read_only(caller);
  END IF;
END
$$;

CREATE OR REPLACE FUNCTION snowflake_sql.check_shard(shard integer) RETURNS void
  LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF shard IS NULL THEN
    PERFORM snowflake_sql.refuse_argument('22004', 'shard is null', 'Layout {{BITS}} has shards 0 to {{LAST_SHARD}}.',
      'Pass the shard that the row belongs to.');
  ELSIF shard < 0 OR shard > {{LAST_SHARD}} THEN
    PERFORM snowflake_sql.refuse_argument('22023', format('shard %s is out of range', shard),
      'Layout {{BITS}} has shards 0 to {{LAST_SHARD}}.', 'Pass a shard of the layout.');
  END IF;
END
$$;

-- Returns "snowflake.max_wait" in milliseconds. If the library is not loaded, the server accepts any text for
-- "snowflake.max_wait".
CREATE OR REPLACE FUNCTION snowflake_sql.max_wait() RETURNS bigint
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  stated CONSTANT text := current_setting('snowflake.max_wait', true);
  ms numeric;
BEGIN
  IF coalesce(stated, '') = '' THEN
    RETURN 2000;
  END IF;
  BEGIN
    ms := CASE WHEN stated ~ '^ *[0-9.]+ *$' THEN round(stated::numeric)
               ELSE ceil(extract(epoch FROM stated::interval) * 1000) END;
  EXCEPTION WHEN data_exception THEN
    NULL;
  END;
  IF ms BETWEEN 0 AND 2147483647 THEN
    RETURN ms;
  END IF;
  RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
    MESSAGE = format('invalid value for parameter "snowflake.max_wait": "%s"', stated),
    DETAIL = 'The setting is a time from 0 to 2147483647 ms. A number without a unit is in milliseconds.',
    HINT = 'Set "snowflake.max_wait" to a time, such as ''2s''.';
END
$$;

-- Returns the value that a counter has when all ids before the time `mark` are used. No id uses the first time unit
-- (tick) after the epoch, because the lowest result marks this tick as used.
CREATE OR REPLACE FUNCTION snowflake_sql.used_before(mark bigint) RETURNS bigint
  LANGUAGE sql IMMUTABLE
AS $$
  SELECT (greatest(0, (least(mark, {{END_MS}}) - {{EPOCH_MS}} + {{TICK_MS}} - 1) / {{TICK_MS}} - 1) << {{TICK_SHIFT}})
    | {{PER_TICK}}
$$;

-- Writes the high-water mark to the sequence "high_water", and from PostgreSQL 17 on flushes it to disk. Only after
-- that, write_mark() copies the high-water mark to the sequence "published". CASE guarantees the order, because CASE
-- evaluates a condition before its result. REQUIRES the lock on the table "gate".
CREATE OR REPLACE FUNCTION snowflake_sql.write_mark(mark bigint) RETURNS bigint
  LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  IF current_setting('server_version_num')::integer >= 170000 THEN
    RETURN CASE WHEN setval('snowflake.high_water', mark) = mark
                THEN CASE WHEN pg_logical_emit_message(false, 'snowflake', ''::text, true) IS NOT NULL
                          THEN setval('snowflake_sql.published', mark) END END;
  END IF;
  RETURN CASE WHEN setval('snowflake.high_water', mark) = mark THEN setval('snowflake_sql.published', mark) END;
END
$$;

-- Compares the times in the sequences "high_water" and "published", and sets both sequences to the later time. Returns
-- the later time. The times in "high_water" and "published" differ after PostgreSQL has reset the unlogged sequences,
-- or after an administrator has set "high_water". REQUIRES the lock on the table "gate".
CREATE OR REPLACE FUNCTION snowflake_sql.adopt() RETURNS bigint
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  mark CONSTANT bigint := pg_sequence_last_value('snowflake.high_water');
  published CONSTANT bigint := pg_sequence_last_value('snowflake_sql.published');
  counter regclass;
BEGIN
  IF mark = published THEN
    RETURN mark;
  ELSIF mark IS NULL OR mark < {{EPOCH_MS}} THEN
    PERFORM snowflake_sql.refuse('mark_lost', NULL,
      format('Sequence snowflake.high_water contains %s ms since 1970, which is before the epoch ({{EPOCH_MS}} ms).',
             coalesce(mark, 0)));
  ELSIF mark < published THEN
    RETURN snowflake_sql.write_mark(published);
  END IF;
  FOREACH counter IN ARRAY {{COUNTERS}} LOOP
    IF coalesce(pg_sequence_last_value(counter) < snowflake_sql.used_before(mark), true) THEN
      PERFORM setval(counter, snowflake_sql.used_before(mark));
    END IF;
  END LOOP;
  RETURN snowflake_sql.write_mark(mark);
END
$$;

-- Raises the error for a clock that does not allow minting. Call refuse_clock() only if the clock is outside the times
-- of the id layout, or too far ahead of the high-water mark.
CREATE OR REPLACE FUNCTION snowflake_sql.refuse_clock(now_ms bigint, mark bigint) RETURNS void
  LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  IF now_ms < {{EPOCH_MS}} THEN
    PERFORM snowflake_sql.refuse('clock_before_epoch', NULL,
      format('The clock shows %s. The epoch of the ids is %s.', snowflake_sql.time_at(now_ms),
             snowflake_sql.time_at({{EPOCH_MS}})));
  ELSIF now_ms >= {{END_MS}} THEN
    PERFORM snowflake_sql.refuse('layout_exhausted', NULL,
                                 format('Ids of layout {{LAYOUT}} can only have times before %s.',
                                        snowflake_sql.time_at({{END_MS}})));
  END IF;
  PERFORM snowflake_sql.refuse('clock_jumped', snowflake_sql.span(now_ms - mark),
    format('The clock shows %s. The high-water mark is %s. The clock may be at most %s ahead.',
           snowflake_sql.time_at(now_ms), snowflake_sql.time_at(mark), snowflake_sql.span({{JUMP_MS}})));
END
$$;

-- Sleeps for up to 10 ms, because the clock does not allow ids of the time `next_ms` yet. Returns how long the call has
-- waited. Raises an error if the call would wait longer than "snowflake.max_wait".
CREATE OR REPLACE FUNCTION snowflake_sql.wait(shard integer, next_ms bigint, lead_ms bigint, at_mark boolean,
                                              waited bigint) RETURNS bigint
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  now_ms CONSTANT bigint := snowflake_sql.clock_ms();
  needed CONSTANT bigint := greatest(1, next_ms - lead_ms - now_ms);
  budget CONSTANT bigint := snowflake_sql.max_wait();
  part CONSTANT bigint := least(needed, 10);
BEGIN
  IF waited + needed > budget THEN
    IF at_mark THEN
      PERFORM snowflake_sql.refuse('mark_ahead', NULL,
        format('Ids may have been minted up to %s, but the clock shows %s. With "snowflake.max_lead" {{LEAD_MS}} ms, '
               'the call would wait %s. "snowflake.max_wait" is %s ms.',
               snowflake_sql.time_at(next_ms), snowflake_sql.time_at(now_ms), snowflake_sql.span(needed), budget));
    ELSIF needed > budget AND next_ms > now_ms + {{LEAD_MS}} + {{TICK_MS}} THEN
      PERFORM snowflake_sql.refuse('clock_behind', shard::text,
        format('The next id would have the time %s, but the clock shows %s. With "snowflake.max_lead" {{LEAD_MS}} ms, '
               'the call would wait %s. "snowflake.max_wait" is %s ms.',
               snowflake_sql.time_at(next_ms), snowflake_sql.time_at(now_ms), snowflake_sql.span(needed), budget));
    END IF;
    PERFORM snowflake_sql.refuse('waited_too_long', shard::text,
      format('The call waited %s, and "snowflake.max_wait" is %s ms. '
             'All ids of the shard with a time before %s are used, and the clock shows %s. '
             'A shard has {{PER_TICK}} ids per tick of {{TICK_MS}} ms.',
             snowflake_sql.span(waited), budget, snowflake_sql.time_at(next_ms), snowflake_sql.time_at(now_ms)));
  END IF;
  PERFORM pg_sleep(part / 1000.0);
  RETURN waited + part;
END
$$;

-- Reserves one or more time units (ticks) of the counter, while the table "gate" is locked. If the end of the last
-- reserved tick is later than the high-water mark, take_ticks() first raises the high-water mark. `next_ms` is the
-- start of the `first` tick. take_ticks() returns 0 ticks if `next_ms` is more than `lead_ms` after the clock.
-- `at_mark` is true if the counter has issued no id since it was set to the high-water mark.
CREATE OR REPLACE FUNCTION snowflake_sql.take_ticks(counter regclass, wanted bigint, mark bigint, now_ms bigint,
                                                    lead_ms bigint, OUT first bigint, OUT ticks bigint,
                                                    OUT next_ms bigint, OUT at_mark boolean)
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  latest CONSTANT bigint := coalesce(pg_sequence_last_value(counter), snowflake_sql.used_before(mark));
BEGIN
  ticks := 1;
  first := latest >> {{TICK_SHIFT}};
  next_ms := {{EPOCH_MS}} + first * {{TICK_MS}};
  -- take_ticks() returns the current tick of the counter if it has free sequence numbers, and the clock and the
  -- high-water mark permit its time.
  IF wanted = 0 AND (latest & {{TICK_MASK}}) < {{PER_TICK}} AND next_ms < mark AND next_ms + {{TICK_MS}} > now_ms
     AND next_ms <= now_ms + lead_ms THEN
    RETURN;
  END IF;
  ticks := 0;
  at_mark := latest = snowflake_sql.used_before(mark);
  first := greatest(first + 1, (now_ms - {{EPOCH_MS}}) / {{TICK_MS}});
  next_ms := {{EPOCH_MS}} + first * {{TICK_MS}};
  IF first >= {{TICKS}} THEN
    PERFORM snowflake_sql.refuse('layout_exhausted', NULL,
                                 format('Ids of layout {{LAYOUT}} can only have times before %s.',
                                        snowflake_sql.time_at({{END_MS}})));
  END IF;
  IF next_ms <= now_ms + lead_ms THEN
    ticks := greatest(1, least(wanted, (now_ms + lead_ms - next_ms) / {{TICK_MS}} + 1, {{TICKS}} - first));
    IF next_ms + ticks * {{TICK_MS}} > mark THEN
      PERFORM snowflake_sql.write_mark(next_ms + ticks * {{TICK_MS}} + {{RESERVE_MS}});
    END IF;
    PERFORM setval(counter, (first + ticks - 1 << {{TICK_SHIFT}}) | CASE wanted WHEN 0 THEN 0 ELSE {{PER_TICK}} END);
  END IF;
END
$$;

-- If `wanted` is 0, opens the next time unit (tick) of the counter for all sessions. If `wanted` is positive, reserves
-- up to `wanted` time units (ticks) of the counter for the caller alone. Returns the `first` tick and the number of
-- `ticks`. If the next tick begins more than `lead_ms` after the clock, open_tick() waits for up to 10 ms, and then
-- returns 0 ticks. If open_tick() returns 0 ticks, the caller must call it again.
CREATE OR REPLACE FUNCTION snowflake_sql.open_tick(shard integer, wanted bigint, caller text, INOUT waited bigint,
                                                   OUT first bigint, OUT ticks bigint)
  LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s'
AS $$
DECLARE
  lead_ms CONSTANT bigint := CASE wanted WHEN 0 THEN {{LEAD_TICKS}} ELSE {{LEAD_TICKS}} / 2 END * {{TICK_MS}};
  mark bigint;
  now_ms bigint;
  next_ms bigint;
  at_mark boolean;
BEGIN
  IF current_setting('transaction_read_only') <> 'off' THEN
    PERFORM snowflake_sql.refuse_read_only(caller);
  ELSIF shard IS NULL OR shard < 0 OR shard > {{LAST_SHARD}} THEN
    PERFORM snowflake_sql.check_shard(shard);
  END IF;
  -- The subtransaction is always rolled back, to release the lock on "gate". The rollback does not undo setval().
  BEGIN
    LOCK TABLE snowflake_sql.gate IN EXCLUSIVE MODE;
    mark := pg_sequence_last_value('snowflake.high_water');
    IF (mark = pg_sequence_last_value('snowflake_sql.published')) IS NOT TRUE THEN
      mark := snowflake_sql.adopt();
    END IF;
    now_ms := snowflake_sql.clock_ms();
    IF now_ms < {{EPOCH_MS}} OR now_ms >= {{END_MS}} OR now_ms - mark > {{JUMP_MS}} THEN
      PERFORM snowflake_sql.refuse_clock(now_ms, mark);
    END IF;
    SELECT t.* INTO first, ticks, next_ms, at_mark
      FROM snowflake_sql.take_ticks({{COUNTER}}, wanted, mark, now_ms, lead_ms) AS t;
    RAISE EXCEPTION USING ERRCODE = 'SF001';
  EXCEPTION WHEN SQLSTATE 'SF001' THEN
    NULL;
  END;
  waited := CASE ticks WHEN 0 THEN snowflake_sql.wait(shard, next_ms, lead_ms, at_mark, coalesce(waited, 0))
                       ELSE coalesce(waited, 0) END;
END
$$;

-- Makes every later id of a shard greater than all ids of a time unit (tick). If the argument `shard` is null, the
-- function applies to all shards. If `durable` is true, later ids are also greater after a crash of the server.
CREATE OR REPLACE FUNCTION snowflake_sql.raise_to(shard integer, tick bigint, durable boolean) RETURNS void
  LANGUAGE plpgsql VOLATILE SET lock_timeout = '5s'
AS $$
DECLARE
  used CONSTANT bigint := tick << {{TICK_SHIFT}} | {{PER_TICK}};
  mark bigint;
  counter regclass;
BEGIN
  BEGIN
    LOCK TABLE snowflake_sql.gate IN EXCLUSIVE MODE;
    mark := snowflake_sql.adopt();
    IF durable AND {{EPOCH_MS}} + (tick + 1) * {{TICK_MS}} > mark THEN
      PERFORM snowflake_sql.write_mark({{EPOCH_MS}} + (tick + 1) * {{TICK_MS}});
    END IF;
    FOREACH counter IN ARRAY CASE WHEN shard IS NULL THEN {{COUNTERS}} ELSE ARRAY[{{COUNTER}}] END LOOP
      IF coalesce(pg_sequence_last_value(counter) < used, true) THEN
        PERFORM setval(counter, used);
      END IF;
    END LOOP;
    RAISE EXCEPTION USING ERRCODE = 'SF001';
  EXCEPTION WHEN SQLSTATE 'SF001' THEN
    NULL;
  END;
END
$$;

-- Raises the error that an id is ahead of the clock.
CREATE OR REPLACE FUNCTION snowflake_sql.refuse_id_ahead(id bigint, lead_ms bigint) RETURNS void
  LANGUAGE plpgsql VOLATILE SET datestyle = 'ISO'
AS $$
DECLARE
  now_ms CONSTANT bigint := snowflake_sql.clock_ms();
  id_ms CONSTANT bigint := {{EPOCH_MS}} + (id >> {{BELOW_BITS}}) * {{TICK_MS}};
BEGIN
  IF id_ms - now_ms > 86400000 THEN
    PERFORM snowflake_sql.refuse('id_ahead', id::text,
      format('In layout {{LAYOUT}}, the id has the time %s. The clock shows %s. If the id '
             'was minted just now, its epoch is %s.',
             snowflake_sql.time_at(id_ms), snowflake_sql.time_at(now_ms),
             left(snowflake_sql.time_at({{EPOCH_MS}} - (id_ms - now_ms)), 10)),
      'If the id was minted with another epoch or layout, create the extension with that epoch and layout. See '
      '"Moving from something else" in the documentation.');
  END IF;
  PERFORM snowflake_sql.refuse('id_ahead', id::text,
    format('The id has the time %s. The clock shows %s. "snowflake.max_lead" is {{LEAD_MS}} ms.%s',
           snowflake_sql.time_at(id_ms), snowflake_sql.time_at(now_ms),
           CASE WHEN lead_ms < {{LEAD_MS}} THEN ' A batch of ids may be ahead by half of this time.' ELSE '' END),
    format('Correct the clock, or try again in %s.', snowflake_sql.span(greatest(1, id_ms - now_ms - lead_ms))));
END
$$;

-- Makes the next id of a shard greater than the argument `id`. First waits until the time of `id` is at most `lead_ms`
-- ahead of the clock.
CREATE OR REPLACE FUNCTION snowflake_sql.advance_past(shard integer, id bigint, lead_ms bigint, caller text)
  RETURNS void
  LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  id_ms CONSTANT bigint := {{EPOCH_MS}} + (id >> {{BELOW_BITS}}) * {{TICK_MS}};
  waited bigint := 0;
  needed bigint;
BEGIN
  PERFORM snowflake_sql.check_call(caller);
  PERFORM snowflake_sql.check_shard(shard);
  IF id NOT BETWEEN 0 AND {{LAST_ID}} THEN
    PERFORM snowflake_sql.refuse_id(id, 0);
  END IF;
  LOOP
    needed := id_ms - lead_ms - snowflake_sql.clock_ms();
    EXIT WHEN needed <= 0;
    IF waited + needed > snowflake_sql.max_wait() THEN
      PERFORM snowflake_sql.refuse_id_ahead(id, lead_ms);
    END IF;
    PERFORM pg_sleep(least(needed, 10) / 1000.0);
    waited := waited + least(needed, 10);
  END LOOP;
  PERFORM snowflake_sql.raise_to(shard, id >> {{BELOW_BITS}}, false);
END
$$;
