
-- The views show durations in milliseconds, as the views pg_stat_* do.

CREATE FUNCTION snowflake.layout(
    OUT bits text, OUT time_bits integer, OUT region_bits integer, OUT shard_bits integer,
    OUT sequence_bits integer, OUT tick_ms integer, OUT epoch timestamptz, OUT regions integer,
    OUT shards integer, OUT ids_per_second bigint, OUT ends_at timestamptz,
    OUT used_percent double precision)
  AS 'MODULE_PATHNAME', 'snowflake_layout'
  LANGUAGE C VOLATILE PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.layout() IS 'Returns the row of the view snowflake.layout';

CREATE VIEW snowflake.layout AS SELECT * FROM snowflake.layout();
COMMENT ON VIEW snowflake.layout IS
  'Shows the layout of this database''s ids: the bits, the time unit (tick), the epoch, how many ids a shard can '
  'mint, and when the layout ends';

CREATE FUNCTION snowflake.preview_layout(layout text, tick text DEFAULT '0', epoch text DEFAULT '2025-01-01')
  RETURNS snowflake.layout
  AS 'MODULE_PATHNAME', 'snowflake_preview_layout'
  LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.preview_layout(text, text, text) IS
  'For any layout, returns the columns that the view snowflake.layout has. Write the arguments as in '
  'postgresql.conf. Tick 0 means the tick of the preset, or 1 ms without a preset';

CREATE FUNCTION snowflake.shard_stats(
    OUT shard integer, OUT last_id bigint, OUT last_time timestamptz, OUT ids bigint,
    OUT batches bigint, OUT borrowed_ticks bigint, OUT waits bigint, OUT wait_time double precision,
    OUT refusals bigint, OUT rate double precision, OUT capacity bigint, OUT stats_since timestamptz)
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'snowflake_shard_stats'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 100;
COMMENT ON FUNCTION snowflake.shard_stats() IS 'Returns the rows of the view snowflake.shard_stats';

CREATE VIEW snowflake.shard_stats AS SELECT * FROM snowflake.shard_stats();
COMMENT ON VIEW snowflake.shard_stats IS
  'Shows a row for each shard for which this database has minted since the server started: the last id and the time '
  'of this id. Other columns count events since "stats_since": ids, calls for several ids (batches), waits, the time '
  'waited in ms, and refused calls. Only calls that would wait longer than snowflake.max_wait for the next id of the '
  'shard count as refused. "borrowed_ticks" shows how far calls have moved ids ahead of the clock. The column '
  '"capacity" shows how many ids a shard can mint in a second';

CREATE FUNCTION snowflake.database_stats(
    OUT stats_since timestamptz, OUT ids bigint, OUT batches bigint, OUT borrowed_ticks bigint,
    OUT waits bigint, OUT wait_time double precision, OUT refusals bigint,
    OUT mark_extensions bigint, OUT mark_flushes bigint, OUT mark_flush_time double precision,
    OUT longest_mark_flush double precision, OUT commit_waits bigint,
    OUT commit_wait_time double precision, OUT rate double precision, OUT capacity bigint)
  AS 'MODULE_PATHNAME', 'snowflake_database_stats'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.database_stats() IS 'Returns the row of the view snowflake.database_stats';

CREATE VIEW snowflake.database_stats AS SELECT * FROM snowflake.database_stats();
COMMENT ON VIEW snowflake.database_stats IS
  'Shows the sums of the ids, batches and borrowed ticks of all shards of this database, and all its waits and '
  'refused calls. The view also counts the writes of the high-water mark, and the waits for the flush of the mark '
  '(number, total ms, longest ms). Other columns show the waits before commits, the average ids per second, and how '
  'many ids a shard can mint in a second';

CREATE FUNCTION snowflake.refusals(
    OUT cause text, OUT refusals bigint, OUT last_at timestamptz, OUT since timestamptz)
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'snowflake_refusals'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 15;
COMMENT ON FUNCTION snowflake.refusals() IS 'Returns the rows of the view snowflake.refusals';

CREATE VIEW snowflake.refusals AS SELECT * FROM snowflake.refusals();
COMMENT ON VIEW snowflake.refusals IS
  'Shows the refused calls of this database since the counters were last reset. Each row shows a cause, the number '
  'of refused calls, and the time of the last refused call. If calls are still refused, the column "since" shows '
  'when this began';

CREATE FUNCTION snowflake.databases(
    OUT database text, OUT mark timestamptz, OUT ids bigint, OUT region integer, OUT owned_shards text,
    OUT same_ids_as text)
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'snowflake_databases'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 10;
COMMENT ON FUNCTION snowflake.databases() IS 'Returns the rows of the view snowflake.databases';

CREATE VIEW snowflake.databases AS SELECT * FROM snowflake.databases();
COMMENT ON VIEW snowflake.databases IS
  'Shows the databases that have minted ids since the server started: the high-water mark, the number of ids since '
  'stats_since, the region and the owned shards. The column same_ids_as shows another database that has minted the '
  'same shard in the same region. Dropping a database frees its memory';

CREATE FUNCTION snowflake.clock_history(
    OUT backward_steps bigint, OUT largest_backward_step_ms double precision,
    OUT forward_steps bigint, OUT largest_forward_step_ms double precision,
    OUT offset_ms double precision, OUT estimated_error_ms double precision,
    OUT clock_source text, OUT counter_used boolean)
  AS 'MODULE_PATHNAME', 'snowflake_clock_history'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.clock_history() IS 'Returns the row of the view snowflake.clock_history';

CREATE VIEW snowflake.clock_history AS SELECT * FROM snowflake.clock_history();
COMMENT ON VIEW snowflake.clock_history IS
  'Shows the steps of the clock since the server started. Other columns show the clock''s offset and estimated error '
  'as the kernel reports them (null if the kernel reports none), the kernel''s clock source, and whether the '
  'processor''s counter is used between two clock readings. The view snowflake.health shows the present state of the '
  'clock';

CREATE FUNCTION snowflake.lease(
    OUT fleet bigint, OUT region integer, OUT until timestamptz, OUT published_until timestamptz,
    OUT length_ms double precision, OUT last_renewal timestamptz, OUT missed_renewals bigint,
    OUT last_contact timestamptz, OUT clocks_apart_ms double precision, OUT incarnation bigint, OUT conflict text,
    OUT last_message text)
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'snowflake_lease'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 1;
COMMENT ON FUNCTION snowflake.lease() IS 'Returns the row of the view snowflake.lease';

CREATE VIEW snowflake.lease AS SELECT * FROM snowflake.lease();
COMMENT ON VIEW snowflake.lease IS
  'Shows the lease of this server: the identifier of the fleet, the region, the end of the lease, and the time up to '
  'which sessions may mint at present. The length of a lease is the time since the server start or the last lost '
  'lease, but at least a minute and at most snowflake.lease plus snowflake.max_lead. Other columns show the last '
  'renewal, the failed renewals since then, the last contact with the lease server, and how many ms this server''s '
  'clock was ahead of the lease server''s clock at that contact. The column "incarnation" identifies this run of the '
  'server. If another server mints in the same region, the column "conflict" shows its name. The column '
  '"last_message" shows the last message of the lease worker. If the server has its region from snowflake.region, '
  '"until" and "published_until" are null. If snowflake.lease_conninfo is not set, the view has no row';

-- Only privileged roles may call lease(), because the last message of the lease worker may contain names of servers and
-- hosts.
REVOKE ALL ON FUNCTION snowflake.lease() FROM PUBLIC;

CREATE FUNCTION snowflake.health(
    OUT minting boolean, OUT reason text, OUT advice text, OUT clock timestamptz,
    OUT mark timestamptz, OUT covered_until timestamptz, OUT lead_ms double precision,
    OUT drift_ms double precision, OUT synchronized boolean, OUT maximum_error_ms double precision,
    OUT last_refusal timestamptz, OUT last_refusal_cause text, OUT layout_ends_at timestamptz,
    OUT cloned boolean)
  AS 'MODULE_PATHNAME', 'snowflake_health'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.health() IS 'Returns the row of the view snowflake.health';

CREATE VIEW snowflake.health AS SELECT * FROM snowflake.health();
COMMENT ON VIEW snowflake.health IS
  'Shows whether this database mints ids. If the database does not mint ids, shows the reason and the advice. The '
  'remaining columns show the times and numbers that the view compares. If the database mints ids, but the column '
  '"reason" is not null, an administrator must solve the problem that the column "reason" describes. The view always '
  'has one row, even if all other functions fail';


CREATE FUNCTION snowflake.explain_id(
    INOUT id bigint, OUT created_at timestamptz, OUT age interval, OUT region integer,
    OUT shard integer, OUT sequence integer, OUT minted_by text, OUT possible boolean,
    OUT contradiction text)
  AS 'MODULE_PATHNAME', 'snowflake_explain_id'
  LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.explain_id(bigint) IS
  'Decodes a number as an id, and explains the result. The result also shows the age of the id, and the server or '
  'the backfill() to which the id belongs. If this database cannot have minted the id, the column "contradiction" '
  'shows why';

CREATE FUNCTION snowflake.now_bounds(OUT earliest timestamptz, OUT latest timestamptz)
  AS 'MODULE_PATHNAME', 'snowflake_now_bounds'
  LANGUAGE C VOLATILE PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.now_bounds() IS
  'Returns the earliest and the latest time that the true time can have: the clock minus and plus the maximum error '
  'of the clock. If the clock is not synchronized, the call fails';

CREATE FUNCTION snowflake.reset_stats() RETURNS void
  AS 'MODULE_PATHNAME', 'snowflake_reset_stats'
  LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.reset_stats() IS
  'Resets the counters of this database in the views shard_stats, database_stats and refusals';

-- As with pg_stat_reset(), only privileged roles may reset the counters of statistics.
REVOKE ALL ON FUNCTION snowflake.reset_stats() FROM PUBLIC;
