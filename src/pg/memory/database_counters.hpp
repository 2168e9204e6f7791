// The statistics counters of a database, in addition to the statistics counters of each shard. A
// call that gets an id without waiting changes only counters of its shard.
//
// Only refused calls are counted for a database that has no shared state, for example because it
// has not minted since server start. PostgreSQL's cumulative statistics are not used, because they
// reach shared memory only when a session is idle. To log when calls begin or cease to be refused,
// a session needs the counters of refused calls at once.
#pragma once

#include <atomic>
#include <cstdint>

#include "pg/errors/cause.hpp"
#include "pg/errors/log_limit.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

struct Refusals {
  std::atomic<uint64_t> count;
  std::atomic<int64_t> last_ms;        // time of the last refused call, on the wall clock
  std::atomic<int64_t> last_us;        // time of the last refused call, on the monotonic clock
  std::atomic<int64_t> since_ms;       // time of the first refused call; 0: no refused calls now
  std::atomic<uint64_t> count_before;  // `count` at the time since_ms, modulo 2^64
  std::atomic<Oid> database;           // the database in which the calls were refused
  Episode episode;                     // the log messages about the refused calls
};

struct alignas(64) Statistics {
  std::atomic<int64_t> since_ms;  // time of the last reset
  std::atomic<int64_t> since_us;  // time of the last reset, as time since boot
  std::atomic<uint64_t> waits;    // waits that are counted for the database, not for one shard
  std::atomic<uint64_t> waited_us;
  std::atomic<uint64_t> mark_extensions;
  std::atomic<uint64_t> mark_flushes;  // flushes for which a call waited
  std::atomic<uint64_t> mark_flush_us;
  std::atomic<int64_t> longest_mark_flush_us;
  std::atomic<uint32_t> mark_writers;    // sessions that write or flush the high-water mark
  std::atomic<int64_t> mark_stalled_us;  // 0: no session writes the high-water mark
  std::atomic<uint64_t> commit_waits;
  std::atomic<uint64_t> commit_waited_us;
  LogLimit slow_flush;
  Refusals refusals[kCauses];
};

}  // namespace snowflake::pg
