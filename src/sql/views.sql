
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
  'The layout of this database''s ids: bits, tick, epoch, capacity of a shard, and the end of the layout';

CREATE FUNCTION snowflake.preview_layout(layout text, tick text DEFAULT '0', epoch text DEFAULT '2025-01-01')
  RETURNS snowflake.layout
  AS 'MODULE_PATHNAME', 'snowflake_preview_layout'
  LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.preview_layout(text, text, text) IS
  'The view layout for any layout. The arguments are in the form of postgresql.conf; tick 0 is the preset''s own, or '
  '1 ms';

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
  'Each shard of this database that minted since the server started: its last id and the time of that. Since '
  'stats_since: ids, batches, ticks borrowed ahead of the clock, waits and ms waited, calls refused because of the '
  'clock, average ids a second. capacity: the ids a second that a shard can mint';

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
  'The statistics of all shards of this database since stats_since: ids, batches, borrowed ticks, waits and ms '
  'waited, refusals. Writes of the high-water mark; the number, total ms and longest ms of waits for its flush; waits '
  'before commits; average ids a second, and the capacity of one shard';

CREATE FUNCTION snowflake.refusals(
    OUT cause text, OUT refusals bigint, OUT last_at timestamptz, OUT since timestamptz)
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'snowflake_refusals'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 15;
COMMENT ON FUNCTION snowflake.refusals() IS 'Behind the view snowflake.refusals';

CREATE VIEW snowflake.refusals AS SELECT * FROM snowflake.refusals();
COMMENT ON VIEW snowflake.refusals IS
  'The refused calls of this database since stats_since, a row for each cause: their number, the time of the last '
  'one, and since when they continue (null if they have ended)';

CREATE FUNCTION snowflake.databases(
    OUT database text, OUT mark timestamptz, OUT ids bigint, OUT region integer, OUT owned_shards text,
    OUT same_ids_as text)
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'snowflake_databases'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 10;
COMMENT ON FUNCTION snowflake.databases() IS 'Behind the view snowflake.databases';

CREATE VIEW snowflake.databases AS SELECT * FROM snowflake.databases();
COMMENT ON VIEW snowflake.databases IS
  'The databases that have minted since the server started, with '
  'their marks, their ids since stats_since, and the region and the shards that their sessions mint; another '
  'database that has minted the same shard in the same region. '
  'Dropping a database frees its memory';

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
    OUT last_contact timestamptz, OUT clocks_apart_ms double precision, OUT incarnation bigint, OUT conflict text,
    OUT last_message text)
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'snowflake_lease'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 1;
COMMENT ON FUNCTION snowflake.lease() IS 'Behind the view snowflake.lease';

CREATE VIEW snowflake.lease AS SELECT * FROM snowflake.lease();
COMMENT ON VIEW snowflake.lease IS
  'The lease of this server: fleet and region; the end of the lease, and the end that is published in any database; '
  'the requested length, which is the age of this incarnation, at least a minute and at most snowflake.lease; the '
  'last renewal and the failed attempts since; the last answer, and by how many ms this server''s clock was ahead '
  'then; the incarnation; another server that mints in the same region; the last message. A reported static region '
  'has a row without a lease. Without snowflake.lease_conninfo there is no row';

-- The last message of the lease worker may contain names of other servers and hosts.
REVOKE ALL ON FUNCTION snowflake.lease() FROM PUBLIC;

CREATE FUNCTION snowflake.health(
    OUT minting boolean, OUT reason text, OUT advice text, OUT clock timestamptz,
    OUT mark timestamptz, OUT covered_until timestamptz, OUT lead_ms double precision,
    OUT drift_ms double precision, OUT synchronized boolean, OUT maximum_error_ms double precision,
    OUT last_refusal timestamptz, OUT last_refusal_cause text, OUT layout_ends_at timestamptz,
    OUT cloned boolean)
  AS 'MODULE_PATHNAME', 'snowflake_health'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.health() IS 'Behind the view snowflake.health';

CREATE VIEW snowflake.health AS SELECT * FROM snowflake.health();
COMMENT ON VIEW snowflake.health IS
  'For probes: whether this database mints, the reason and the advice if it does not, and the numbers behind it. If '
  'it mints, a reason shows what an operator must confirm: that this clone of the database is the one that mints. It '
  'always has one row, even if all other functions are refused';


CREATE FUNCTION snowflake.explain_id(
    INOUT id bigint, OUT created_at timestamptz, OUT age interval, OUT region integer,
    OUT shard integer, OUT sequence integer, OUT minted_by text, OUT possible boolean,
    OUT contradiction text)
  AS 'MODULE_PATHNAME', 'snowflake_explain_id'
  LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.explain_id(bigint) IS
  'Any number as an id: its fields and age, the server or the table of backfill() that it belongs to, whether this '
  'database can have minted it, and the contradictions';

CREATE FUNCTION snowflake.now_bounds(OUT earliest timestamptz, OUT latest timestamptz)
  AS 'MODULE_PATHNAME', 'snowflake_now_bounds'
  LANGUAGE C VOLATILE PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.now_bounds() IS
  'The two times between which the true time lies: the clock, minus and plus its maximum error. An error if the clock '
  'is not synchronized';

CREATE FUNCTION snowflake.reset_stats() RETURNS void
  AS 'MODULE_PATHNAME', 'snowflake_reset_stats'
  LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.reset_stats() IS
  'Resets the counters of this database: shard_stats, database_stats, refusals';

-- As with pg_stat_reset(): a role that may read the statistics need not have the right to reset them.
REVOKE ALL ON FUNCTION snowflake.reset_stats() FROM PUBLIC;
