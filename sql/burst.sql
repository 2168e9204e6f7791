-- Tests a shard that a burst has driven ahead of the clock. The times of new ids are between the start of the call and
-- max_lead after it, even while the clock catches up. While a shard is ahead by less than max_lead, no call is refused.
SET timezone = 'UTC';
CREATE TEMP TABLE verdict (ids bigint, ahead bigint, in_step bigint, older_than_the_call bigint,
                           beyond_the_lead bigint, not_ascending bigint);
DO $$
DECLARE
  v verdict := (0, 0, 0, 0, 0, 0);
  previous bigint := 0;
  id bigint := 0;
  made timestamptz;
  before timestamptz;
  after timestamptz;
BEGIN
  -- The shard is ahead of the clock by nearly max_lead. The following calls are so slow that the clock catches up.
  WHILE v.in_step < 1000 LOOP
    IF v.ahead = 0 THEN
      PERFORM snowflake.observe(snowflake.make_id(clock_timestamp() + interval '98 ms', 77, 0));
    END IF;
    PERFORM count(*) FROM generate_series(1, 20);
    before := clock_timestamp();
    id := snowflake.next_id(77);
    after := clock_timestamp();
    made := snowflake.time_of(id);
    v.ids := v.ids + 1;
    v.ahead := v.ahead + (made > after)::int;
    v.in_step := v.in_step + (made <= after)::int;
    v.older_than_the_call := v.older_than_the_call + (made < date_trunc('milliseconds', before))::int;
    v.beyond_the_lead := v.beyond_the_lead + (made > after + interval '100 ms')::int;
    v.not_ascending := v.not_ascending + (id <= previous)::int;
    previous := id;
  END LOOP;
  INSERT INTO verdict SELECT v.*;
END
$$;
SELECT ahead > 0 AS some_ahead, in_step > 0 AS some_in_step, older_than_the_call, beyond_the_lead, not_ascending
  FROM verdict;

-- Mints ids that are ahead of the clock by just less than max_lead
SET snowflake.max_wait = 0;
DO $$
DECLARE
  before timestamptz;
BEGIN
  FOR i IN 1 .. 200 LOOP
    before := clock_timestamp();
    PERFORM snowflake.observe(snowflake.make_id(before + interval '98 ms', 78, 0));
    PERFORM snowflake.next_id(78);
  END LOOP;
END
$$;
