// What a database counts beside its shards: refusals by cause, the mark's extensions and flushes,
// waits that belong to no shard. Nothing here is touched by a call that is given an id at once.
//
// In shared memory of our own, beside the database's state. PostgreSQL 18's custom kinds of
// cumulative statistics would do for the counts alone: but 15 to 17 have none, and what is counted
// here also decides which message is due, for all sessions at once, while those reach shared memory
// when a session idles.
#pragma once

#include <atomic>
#include <cstdint>

#include "pg/memory/database_state.hpp"
#include "pg/refuse/cause.hpp"
#include "pg/refuse/log_limit.hpp"

namespace snowflake::pg {

struct Refusals {
  std::atomic<uint64_t> count;
  std::atomic<int64_t> last_ms;        // wall clock
  std::atomic<int64_t> last_us;        // monotonic
  std::atomic<int64_t> since_ms;       // wall clock at the first one of those that go on, or 0
  std::atomic<uint64_t> count_before;  // `count` at that time
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
Statistics& statistics_of(const DatabaseState& state);
Statistics& statistics_of_the_rest();
// Of the current database: null where it has no place.
Statistics& statistics_of(const DatabaseState* state);
void clear_statistics(const DatabaseState& state);
// Starts the counts anew; what goes on, goes on.
void reset_statistics(const DatabaseState& state);

// Whether what is counted is of the current database.
inline bool is_ours(const Refusals& refusals) {
  return refusals.database.load(std::memory_order_relaxed) == MyDatabaseId;
}

// Before the error is raised: counts the refusal in the current database, and says in the log that
// refusals of this cause have begun. Takes no place: that is for minting.
void count_refusal(Cause cause);

// The database has just been found to mint: refusals of causes that concern all of it are over, and
// so are those of other causes that have not come for some seconds.
void end_refusals(const DatabaseState& state);

// A session writes the mark, and may wait for its flush: from now on it is seen to. Where an error
// ends it, at the end of the transaction.
void begin_mark_write(DatabaseState& state);
// Counts it as a flush that a call waited for, if it did.
void end_mark_write(bool flushed);
void forget_mark_write();
// For how long no session has got through with the mark, in microseconds; 0 where none is at it.
int64_t mark_stalled_for_us(const Statistics& statistics);

}  // namespace snowflake::pg
