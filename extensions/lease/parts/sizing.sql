-- Said when a fleet is made: a number that is found out too late, when everything comes back after a power loss at once.

DO $$
DECLARE
  level CONSTANT text := pg_catalog.current_setting('client_min_messages');
BEGIN
  -- CREATE EXTENSION silences notices while a script runs. Whoever connects without them gets none.
  IF level OPERATOR(pg_catalog.=) 'warning' AND NOT EXISTS (
       SELECT FROM pg_catalog.pg_settings AS s WHERE s.name OPERATOR(pg_catalog.=) 'client_min_messages'
          AND s.reset_val OPERATOR(pg_catalog.=) ANY (ARRAY['warning', 'error'])) THEN
    PERFORM pg_catalog.set_config('client_min_messages', 'notice', true);
  END IF;
  RAISE NOTICE USING
    MESSAGE = 'a fleet carries as many servers through a power loss of all of them as half of the regions of its layout',
    DETAIL = 'The default layout has 32 regions, so 16 servers: each takes another region when it is up again, '
             'for its old one is kept until its lease has ended.',
    HINT = 'For more servers choose a layout with more region bits before the first id.';
  PERFORM pg_catalog.set_config('client_min_messages', level, true);
END
$$;
