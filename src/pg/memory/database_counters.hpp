// The counters of a database beside its shards': refusals by cause, the mark's extensions and
// flushes, waits that belong to no shard. Nothing here is touched by a call that is given an id at
// once.
//
// In shared memory of our own, beside the database's state. PostgreSQL 18's custom kinds of
// cumulative statistics would do for the counts alone: but 15 to 17 have none, and what is counted
// here also decides which message is due, for all sessions at once, while those reach shared memory
// when a session idles.
#pragma once

#include <atomic>
#include <cstdint>

#include "pg/errors/cause.hpp"
#include "pg/errors/log_limit.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

struct Refusals {
  std::atomic<uint64_t> count;
  std::atomic<int64_t> last_ms;        // wall clock
  std::atomic<int64_t> last_us;        // monotonic
  std::atomic<int64_t> since_ms;       // wall clock at the first one of those that go on, or 0
  std::atomic<uint64_t> count_before;  // `count` at that time, modulo 2^64
  std::atomic<Oid> database;           // whose they are
  Episode episode;                     // announced in the log
};

struct alignas(64) Statistics {
  std::atomic<int64_t> since_ms;  // when they were reset, or 0
  std::atomic<int64_t> since_us;  // the same by the time since boot
  std::atomic<uint64_t> waits;    // for the mark, or for another id: of no shard
  std::atomic<uint64_t> waited_us;
  std::atomic<uint64_t> mark_extensions;
  std::atomic<uint64_t> mark_flushes;  // that a call waited for
  std::atomic<uint64_t> mark_flush_us;
  std::atomic<int64_t> longest_mark_flush_us;
  std::atomic<uint32_t> mark_writers;    // sessions that write the mark, or wait for its flush, now
  std::atomic<int64_t> mark_stalled_us;  // since when none of them has come to an end, or 0
  std::atomic<uint64_t> commit_waits;
  std::atomic<uint64_t> commit_waited_us;
  LogLimit slow_flush;
  Refusals refusals[kCauses];
};

// One for each place of a database, taken and wiped with it; and one for all databases together
// that have none, whose refusals are all there is to count.
extern Statistics* database_statistics;
void clear_statistics(int place);

}  // namespace snowflake::pg
