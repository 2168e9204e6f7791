// Counters of a database that do not belong to a shard: refusals by cause, writes and flushes of
// the mark, other waits. If a call gets an id at once, the call does not change the database
// counters.
//
// The counters are in the state of the database. For databases without a state, only refusals are
// counted. PostgreSQL 18 has custom cumulative statistics, but 15 to 17 do not. The database
// counters also determine immediately, for all sessions, which log message is due. Cumulative
// statistics reach shared memory only when a session is idle.
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
  std::atomic<int64_t> since_us;  // the time of the reset by the time since boot
  std::atomic<uint64_t> waits;    // waits for the mark or for the id of another server
  std::atomic<uint64_t> waited_us;
  std::atomic<uint64_t> mark_extensions;
  std::atomic<uint64_t> mark_flushes;  // that a call waited for
  std::atomic<uint64_t> mark_flush_us;
  std::atomic<int64_t> longest_mark_flush_us;
  std::atomic<uint32_t>
      mark_writers;  // sessions that are writing the mark or waiting for the flush of the mark
  std::atomic<int64_t> mark_stalled_us;  // since when no writer has finished, or 0
  std::atomic<uint64_t> commit_waits;
  std::atomic<uint64_t> commit_waited_us;
  LogLimit slow_flush;
  Refusals refusals[kCauses];
};

}  // namespace snowflake::pg
