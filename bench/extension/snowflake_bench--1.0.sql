/* snowflake_bench--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION snowflake_bench" to load this file. \quit

-- Yardsticks

CREATE FUNCTION bench.counter(slot integer) RETURNS bigint
  AS 'MODULE_PATHNAME', 'bench_counter' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION bench.counter(integer) IS
  'Measures the cost of calling a C function that only counts its calls in the memory of the backend';

CREATE FUNCTION bench.clock(slot integer) RETURNS bigint
  AS 'MODULE_PATHNAME', 'bench_clock' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION bench.clock(integer) IS 'Measures the cost of a call that reads the clock';

CREATE FUNCTION bench.id(slot integer) RETURNS bigint
  AS 'MODULE_PATHNAME', 'bench_id' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION bench.id(integer) IS
  'Measures the cost of a call that reads the clock and runs a compare-and-swap in shared memory. The result has the '
  'form of an id, but is not unique';

CREATE FUNCTION bench.field(id bigint) RETURNS integer
  AS 'MODULE_PATHNAME', 'bench_field' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bench.field(bigint) IS
  'Measures the least cost of a function that decodes an id: a call, a shift and a mask';

CREATE FUNCTION bench.bytes(id bigint) RETURNS uuid
  AS 'MODULE_PATHNAME', 'bench_bytes' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bench.bytes(bigint) IS
  'Measures the least cost of a function that returns a UUID: a call that allocates 16 bytes of memory';

-- Rivals

CREATE FUNCTION bench.uuidv7() RETURNS uuid
  AS 'MODULE_PATHNAME', 'bench_uuidv7' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bench.uuidv7() IS
  'Returns a UUID of version 7 (RFC 9562), for servers that do not have the function uuidv7(). The UUIDs of a session '
  'are in ascending order';

CREATE FUNCTION bench.ulid() RETURNS uuid
  AS 'MODULE_PATHNAME', 'bench_ulid' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bench.ulid() IS 'Returns a ULID as 16 bytes. The ULIDs of a session are in ascending order';

CREATE FUNCTION bench.ulid_text() RETURNS text
  AS 'MODULE_PATHNAME', 'bench_ulid_text' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bench.ulid_text() IS
  'Returns a ULID as 26 characters. The ULIDs of a session are in ascending order';

CREATE FUNCTION bench.ksuid() RETURNS bytea
  AS 'MODULE_PATHNAME', 'bench_ksuid' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bench.ksuid() IS 'Returns a KSUID as 20 bytes';

CREATE FUNCTION bench.ksuid_text() RETURNS text
  AS 'MODULE_PATHNAME', 'bench_ksuid_text' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bench.ksuid_text() IS 'Returns a KSUID as 27 characters';

CREATE FUNCTION bench.nanoid() RETURNS text
  AS 'MODULE_PATHNAME', 'bench_nanoid' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bench.nanoid() IS 'Returns a NanoID of 21 characters';

-- Each function for time measurements calls the measured C function in a C loop. The measured C function has one
-- argument: an integer, as in next_id(int), or a sequence's OID, as in nextval(regclass). The measured times do not
-- include the cost of the executor, the protocol and the client.

CREATE FUNCTION bench.cpu_ns() RETURNS bigint
  AS 'MODULE_PATHNAME', 'bench_cpu_ns' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION bench.cpu_ns() IS
  'Returns the CPU time of this backend. Other load on the machine does not change the CPU time, but makes the '
  'elapsed time longer';

CREATE FUNCTION bench.once(called regprocedure, argument bigint) RETURNS bigint
  AS 'MODULE_PATHNAME', 'bench_once' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION bench.once(regprocedure, bigint) IS
  'Returns the CPU time of one call in nanoseconds, including the time to find the function';

CREATE FUNCTION bench.rate(called regprocedure, arguments bigint[], start timestamptz, seconds float8,
                           OUT calls bigint, OUT wall_ns bigint, OUT cpu_ns bigint)
  AS 'MODULE_PATHNAME', 'bench_rate' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION bench.rate(regprocedure, bigint[], timestamptz, float8) IS
  'Calls the function "called" repeatedly for some seconds, and returns the number of calls, the elapsed time and the '
  'CPU time. To measure several sessions together, pass the same start time in each session';

CREATE FUNCTION bench.latency(called regprocedure, arguments bigint[], seconds float8)
  RETURNS TABLE (up_to_ns bigint, calls bigint)
  AS 'MODULE_PATHNAME', 'bench_latency' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION bench.latency(regprocedure, bigint[], float8) IS
  'Calls the function "called" repeatedly, and returns a histogram of the durations of the calls. Each step of the '
  'histogram is at most 1/32 longer than the step before';

CREATE FUNCTION bench.endure(called regprocedure, shards integer[], seconds float8,
                             OUT ids bigint, OUT misplaced bigint, OUT descending bigint, OUT twice bigint)
  AS 'MODULE_PATHNAME', 'bench_endure' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION bench.endure(regprocedure, integer[], float8) IS
  'Mints ids of the shards in the argument "shards" in turn. Other sessions may also mint ids of the first shard in '
  '"shards". Returns the number of ids, and the number of wrong ids: with a wrong shard, not greater than the '
  'session''s previous id, or also minted by another session';
