// Counters of a database that do not belong to a shard. A call that gets an id at once does not
// change these counters.
//
// The counters are in the state of the database. For databases without a state, only refusals are
// counted. Cumulative statistics of PostgreSQL 18 are not used, because they reach shared memory
// only when a session is idle. These counters determine at once which log message is due.
#pragma once

#include <atomic>
#include <cstdint>

#include "pg/errors/cause.hpp"
#include "pg/errors/log_limit.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

struct Refusals {
  std::atomic<uint64_t> count;
  std::atomic<int64_t> last_ms;  // wall clock
  std::atomic<int64_t> last_us;  // monotonic
  std::atomic<int64_t>
      since_ms;  // wall clock at the first refusal of a series that continues, or 0
  std::atomic<uint64_t> count_before;  // `count` at since_ms, modulo 2^64
  std::atomic<Oid> database;           // the database of the refusals
  Episode episode;                     // announced in the log
};

struct alignas(64) Statistics {
  std::atomic<int64_t> since_ms;  // when the statistics were reset, or 0
  std::atomic<int64_t> since_us;  // since_ms as time since boot
  std::atomic<uint64_t> waits;    // waits for the mark or for the id of another server
  std::atomic<uint64_t> waited_us;
  std::atomic<uint64_t> mark_extensions;
  std::atomic<uint64_t> mark_flushes;  // that a call waited for
  std::atomic<uint64_t> mark_flush_us;
  std::atomic<int64_t> longest_mark_flush_us;
  std::atomic<uint32_t> mark_writers;    // sessions that write the mark or wait for its flush
  std::atomic<int64_t> mark_stalled_us;  // since when no writer has finished, or 0
  std::atomic<uint64_t> commit_waits;
  std::atomic<uint64_t> commit_waited_us;
  LogLimit slow_flush;
  Refusals refusals[kCauses];
};

}  // namespace snowflake::pg
