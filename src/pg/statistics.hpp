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

#include "pg/database_state.hpp"
#include "pg/log_limit.hpp"

namespace snowflake::pg {

// Why a call was refused; refusal_label() has their names. The order is that of the view.
enum class Cause : uint8_t {
  clock_behind,
  clock_jumped,
  clock_before_epoch,
  waited_too_long,
  mark_ahead,
  mark_lost,
  seal,
  not_owned,
  id_ahead,
  exhausted,
  lease,
  read_only,
  commit_wait,
};
inline constexpr int kCauses = 13;

const char* refusal_label(Cause cause);

struct Refusals {
  std::atomic<uint64_t> count;
  std::atomic<int64_t> last_ms;        // wall clock
  std::atomic<int64_t> last_us;        // monotonic
  std::atomic<int64_t> since_ms;       // wall clock at the first one of those that go on, or 0
  std::atomic<uint64_t> count_before;  // `count` at that time
  Episode episode;                     // announced in the log
};

struct alignas(64) Statistics {
  std::atomic<int64_t> since_ms;  // when they were reset, or 0
  std::atomic<uint64_t> waits;    // for the mark, or for another id: of no shard
  std::atomic<uint64_t> waited_us;
  std::atomic<uint64_t> mark_extensions;
  std::atomic<uint64_t> mark_flushes;  // that a call waited for
  std::atomic<uint64_t> mark_flush_us;
  std::atomic<int64_t> longest_mark_flush_us;
  std::atomic<uint64_t> commit_waits;
  std::atomic<uint64_t> commit_waited_us;
  LogLimit slow_flush;
  Refusals refusals[kCauses];
};

// One for each place of a database; taken and wiped with it.
extern Statistics* database_statistics;
Statistics& statistics_of(const DatabaseState& state);
void clear_statistics(const DatabaseState& state);
// Starts the counts anew; what goes on, goes on.
void reset_statistics(const DatabaseState& state);

// Before the error is raised: counts the refusal in the current database, and says in the log that
// refusals of this cause have begun. Takes a place for the database where it has none, if one is
// free.
void count_refusal(Cause cause);

// The database has just been found to mint: refusals of causes that concern all of it are over, and
// so are those of other causes that have not come for some seconds.
void end_refusals(DatabaseState& state);

// A flush of the mark that a call waited for.
void count_mark_flush(DatabaseState& state, int64_t us);

}  // namespace snowflake::pg
