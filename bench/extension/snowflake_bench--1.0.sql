/* snowflake_bench--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION snowflake_bench" to load this file. \quit

-- Yardsticks

CREATE FUNCTION bench.counter(slot integer) RETURNS bigint
  AS 'MODULE_PATHNAME', 'bench_counter' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION bench.counter(integer) IS 'A call and nothing else: counts in the backend''s memory';

CREATE FUNCTION bench.clock(slot integer) RETURNS bigint
  AS 'MODULE_PATHNAME', 'bench_clock' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION bench.clock(integer) IS 'A call and a clock read';

CREATE FUNCTION bench.id(slot integer) RETURNS bigint
  AS 'MODULE_PATHNAME', 'bench_id' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION bench.id(integer) IS
  'A call, a clock read and a compare-and-swap in shared memory: an id without any of the promises';

CREATE FUNCTION bench.field(id bigint) RETURNS integer
  AS 'MODULE_PATHNAME', 'bench_field' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bench.field(bigint) IS 'A call, a shift and a mask: the least that a decoder does';

CREATE FUNCTION bench.bytes(id bigint) RETURNS uuid
  AS 'MODULE_PATHNAME', 'bench_bytes' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bench.bytes(bigint) IS
  'A call and 16 bytes of memory: the least that a function which returns a UUID does';

-- Rivals

CREATE FUNCTION bench.uuidv7() RETURNS uuid
  AS 'MODULE_PATHNAME', 'bench_uuidv7' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bench.uuidv7() IS 'UUID version 7 (RFC 9562), ascending within the session, for servers without their own';

CREATE FUNCTION bench.ulid() RETURNS uuid
  AS 'MODULE_PATHNAME', 'bench_ulid' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bench.ulid() IS 'ULID, monotonic within the session, in its 16 bytes';

CREATE FUNCTION bench.ulid_text() RETURNS text
  AS 'MODULE_PATHNAME', 'bench_ulid_text' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bench.ulid_text() IS 'ULID, monotonic within the session, as its 26 characters';

CREATE FUNCTION bench.ksuid() RETURNS bytea
  AS 'MODULE_PATHNAME', 'bench_ksuid' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bench.ksuid() IS 'KSUID, in its 20 bytes';

CREATE FUNCTION bench.ksuid_text() RETURNS text
  AS 'MODULE_PATHNAME', 'bench_ksuid_text' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bench.ksuid_text() IS 'KSUID, as its 27 characters';

CREATE FUNCTION bench.nanoid() RETURNS text
  AS 'MODULE_PATHNAME', 'bench_nanoid' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bench.nanoid() IS 'NanoID, 21 characters';

-- The functions for timing call a C function of one argument (an integer, or the OID of a sequence) in a C loop. Their
-- results therefore do not include the cost of the executor, the protocol and the client.

CREATE FUNCTION bench.cpu_ns() RETURNS bigint
  AS 'MODULE_PATHNAME', 'bench_cpu_ns' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION bench.cpu_ns() IS
  'CPU time of this backend: other load on the machine stretches the wall clock, but not this';

CREATE FUNCTION bench.once(called regprocedure, argument bigint) RETURNS bigint
  AS 'MODULE_PATHNAME', 'bench_once' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION bench.once(regprocedure, bigint) IS
  'CPU nanoseconds of one call, the look-up of the function included';

CREATE FUNCTION bench.rate(called regprocedure, arguments bigint[], start timestamptz, seconds float8,
                           OUT calls bigint, OUT wall_ns bigint, OUT cpu_ns bigint)
  AS 'MODULE_PATHNAME', 'bench_rate' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION bench.rate(regprocedure, bigint[], timestamptz, float8) IS
  'Calls as fast as it can from a common start on, for sessions that run side by side';

CREATE FUNCTION bench.latency(called regprocedure, arguments bigint[], seconds float8)
  RETURNS TABLE (up_to_ns bigint, calls bigint)
  AS 'MODULE_PATHNAME', 'bench_latency' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION bench.latency(regprocedure, bigint[], float8) IS
  'Histogram of the time that each call took, in steps of at most 1/32';

CREATE FUNCTION bench.endure(called regprocedure, shards integer[], seconds float8,
                             OUT ids bigint, OUT misplaced bigint, OUT descending bigint, OUT twice bigint)
  AS 'MODULE_PATHNAME', 'bench_endure' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION bench.endure(regprocedure, integer[], float8) IS
  'Mints of the shards in turn, the first of which other sessions mint as well, and counts ids, those of another shard, those not above the session''s last one, and those that another session had';
