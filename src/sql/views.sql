
-- Views. Durations are in milliseconds, as in pg_stat_*.

CREATE FUNCTION snowflake.layout(
    OUT bits text, OUT time_bits integer, OUT region_bits integer, OUT shard_bits integer,
    OUT sequence_bits integer, OUT tick_ms integer, OUT epoch timestamptz, OUT regions integer,
    OUT shards integer, OUT ids_per_second bigint, OUT ends_at timestamptz,
    OUT used_percent double precision)
  AS 'MODULE_PATHNAME', 'snowflake_layout'
  LANGUAGE C VOLATILE PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.layout() IS 'Behind the view snowflake.layout';

CREATE VIEW snowflake.layout AS SELECT * FROM snowflake.layout();
COMMENT ON VIEW snowflake.layout IS
  'What the ids of this database look like: bits, tick, epoch, capacity of a shard, and when they run out';

CREATE FUNCTION snowflake.preview_layout(layout text, tick text DEFAULT '0', epoch text DEFAULT '2025-01-01')
  RETURNS snowflake.layout
  AS 'MODULE_PATHNAME', 'snowflake_preview_layout'
  LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.preview_layout(text, text, text) IS
  'What the view layout would show of any layout, whatever this database is sealed with; tick and epoch as they '
  'would stand in postgresql.conf: tick 0 is the preset''s own, or 1 ms';

CREATE FUNCTION snowflake.shard_stats(
    OUT shard integer, OUT last_id bigint, OUT last_time timestamptz, OUT ids bigint,
    OUT batches bigint, OUT borrowed_ticks bigint, OUT waits bigint, OUT wait_time double precision,
    OUT refusals bigint, OUT rate double precision, OUT capacity bigint, OUT stats_since timestamptz)
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'snowflake_shard_stats'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 100;
COMMENT ON FUNCTION snowflake.shard_stats() IS 'Behind the view snowflake.shard_stats';

CREATE VIEW snowflake.shard_stats AS SELECT * FROM snowflake.shard_stats();
COMMENT ON VIEW snowflake.shard_stats IS
  'Per shard of this database that minted since the server started: last id and its time; since stats_since: ids, '
  'batches, ticks borrowed ahead of the clock, waits and ms waited, calls refused because of the clock, ids a '
  'second on average; capacity: ids a second that a shard can mint';

CREATE FUNCTION snowflake.database_stats(
    OUT stats_since timestamptz, OUT ids bigint, OUT batches bigint, OUT borrowed_ticks bigint,
    OUT waits bigint, OUT wait_time double precision, OUT refusals bigint,
    OUT mark_extensions bigint, OUT mark_flushes bigint, OUT mark_flush_time double precision,
    OUT longest_mark_flush double precision, OUT commit_waits bigint,
    OUT commit_wait_time double precision, OUT rate double precision, OUT capacity bigint)
  AS 'MODULE_PATHNAME', 'snowflake_database_stats'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.database_stats() IS 'Behind the view snowflake.database_stats';

CREATE VIEW snowflake.database_stats AS SELECT * FROM snowflake.database_stats();
COMMENT ON VIEW snowflake.database_stats IS
  'This database since stats_since: ids, batches, borrowed ticks, waits and ms waited of all shards, refusals of '
  'all causes; how often the high-water mark was written, and how often, how long in all and at most (ms) a call '
  'waited for its flush; waits before commits; ids a second on average, and the capacity of one shard';

CREATE FUNCTION snowflake.refusals(
    OUT cause text, OUT refusals bigint, OUT last_at timestamptz, OUT since timestamptz)
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'snowflake_refusals'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 15;
COMMENT ON FUNCTION snowflake.refusals() IS 'Behind the view snowflake.refusals';

CREATE VIEW snowflake.refusals AS SELECT * FROM snowflake.refusals();
COMMENT ON VIEW snowflake.refusals IS
  'Calls of this database that were refused since stats_since, a row for every cause: how many, when the last was, '
  'and since when they have been going on (null where they are over)';

CREATE FUNCTION snowflake.databases(OUT database text, OUT mark timestamptz, OUT ids bigint)
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'snowflake_databases'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 10;
COMMENT ON FUNCTION snowflake.databases() IS 'Behind the view snowflake.databases';

CREATE VIEW snowflake.databases AS SELECT * FROM snowflake.databases();
COMMENT ON VIEW snowflake.databases IS
  'The databases of this server that hold a place of snowflake.max_databases, because they have minted since it '
  'started: the mark of each as it is known, and its ids since its statistics begin. A place is free again when its'
  ' database is dropped';

CREATE FUNCTION snowflake.clock_history(
    OUT backward_steps bigint, OUT largest_backward_step_ms double precision,
    OUT forward_steps bigint, OUT largest_forward_step_ms double precision,
    OUT offset_ms double precision, OUT estimated_error_ms double precision,
    OUT clock_source text, OUT counter_used boolean)
  AS 'MODULE_PATHNAME', 'snowflake_clock_history'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.clock_history() IS 'Behind the view snowflake.clock_history';

CREATE VIEW snowflake.clock_history AS SELECT * FROM snowflake.clock_history();
COMMENT ON VIEW snowflake.clock_history IS
  'The steps of the server''s clock since the server started; the offset and the estimated error that the kernel '
  'reports (null if it reports none), its clock source, and whether the processor''s counter is used between two '
  'readings. The view health has the present state of the clock';

CREATE FUNCTION snowflake.lease(
    OUT fleet bigint, OUT region integer, OUT until timestamptz, OUT published_until timestamptz,
    OUT length_ms double precision, OUT last_renewal timestamptz, OUT missed_renewals bigint,
    OUT last_contact timestamptz, OUT clocks_apart_ms double precision, OUT incarnation bigint, OUT conflict text, OUT last_message text)
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'snowflake_lease'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 1;
COMMENT ON FUNCTION snowflake.lease() IS 'Behind the view snowflake.lease';

CREATE VIEW snowflake.lease AS SELECT * FROM snowflake.lease();
COMMENT ON VIEW snowflake.lease IS
  'Where regions are leased: the fleet and the region, until when ids of it may be minted and are published in any '
  'database, for how long it is asked for by now (as long as this incarnation is old, a minute at least, '
  'snowflake.lease and snowflake.max_lead at most), when it was last granted or renewed and how many attempts have '
  'failed since, when the lease server last answered and how far this server''s clock was ahead of its (ms), the '
  'incarnation, another server that mints in the same region, and the last message of either side. A static region '
  'that is reported has a row without a lease; no row if snowflake.lease_conninfo is not set';

-- The last message may name other servers and hosts.
REVOKE ALL ON FUNCTION snowflake.lease() FROM PUBLIC;

CREATE FUNCTION snowflake.health(
    OUT minting boolean, OUT reason text, OUT advice text, OUT clock timestamptz,
    OUT mark timestamptz, OUT covered_until timestamptz, OUT lead_ms double precision,
    OUT drift_ms double precision, OUT synchronized boolean, OUT maximum_error_ms double precision,
    OUT last_refusal timestamptz, OUT last_refusal_cause text, OUT layout_ends_at timestamptz,
    OUT copied boolean)
  AS 'MODULE_PATHNAME', 'snowflake_health'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.health() IS 'Behind the view snowflake.health';

CREATE VIEW snowflake.health AS SELECT * FROM snowflake.health();
COMMENT ON VIEW snowflake.health IS
  'What a probe should ask: whether this database mints, if not why and what to do, and the numbers behind it; a '
  'reason beside minting is what an operator has to confirm: that this copy of the database is the one that mints. '
  'Always one row, also where every other function is refused';


CREATE FUNCTION snowflake.explain_id(
    INOUT id bigint, OUT created_at timestamptz, OUT age interval, OUT region integer,
    OUT shard integer, OUT sequence integer, OUT minted_by text, OUT possible boolean,
    OUT contradiction text)
  AS 'MODULE_PATHNAME', 'snowflake_explain_id'
  LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.explain_id(bigint) IS
  'What is to be known of any number as an id: its fields, its age, who mints such ids or for which table '
  'backfill() gave them, whether this database can have minted it, and what contradicts that';

CREATE FUNCTION snowflake.now_bounds(OUT earliest timestamptz, OUT latest timestamptz)
  AS 'MODULE_PATHNAME', 'snowflake_now_bounds'
  LANGUAGE C VOLATILE PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.now_bounds() IS
  'Between which times the true time lies: the clock, less and plus its maximum error; an error where the clock is '
  'not synchronized';

CREATE FUNCTION snowflake.reset_stats() RETURNS void
  AS 'MODULE_PATHNAME', 'snowflake_reset_stats'
  LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.reset_stats() IS
  'Starts the counters of this database anew: shard_stats, database_stats, refusals';

-- As with pg_stat_reset(): who may look need not be who may wipe.
REVOKE ALL ON FUNCTION snowflake.reset_stats() FROM PUBLIC;
