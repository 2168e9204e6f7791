#pragma once

#include <atomic>
#include <cstdint>

#include "core/blocker.hpp"
#include "pg/memory/database_counters.hpp"
#include "pg/memory/database_state.hpp"

namespace snowflake::pg {

Statistics& statistics_of(const DatabaseState& state);
// The argument `state` is null for a database that has no shared state.
Statistics& statistics_of(const DatabaseState* state);
// Resets the counters of the current database, but keeps the time since which calls have been
// refused (Refusals::since_ms).
void reset_statistics(const DatabaseState* state);

// Contains the number of refused calls in the current database for one cause. RefusalsSeen includes
// calls that were refused when the database had no shared state yet.
struct RefusalsSeen {
  int64_t count;
  int64_t last_ms;   // 0: none
  int64_t since_ms;  // 0: none
};
RefusalsSeen refusals_seen(const DatabaseState* state, Cause cause);

// Counts a refused call in the current database, and logs when refusals begin. A refused call
// creates no shared state for the database, because only minting creates shared state.
void count_refusal(Blocker blocker);

// end_refusals() is called when the database mints ids, and records which causes of refused calls
// have ended. A cause that concerns the whole database ends with the next minted id. If a cause
// concerns only one shard or one caller, end_refusals() also requires that the last refused call
// was more than 10 s ago.
void end_refusals(const DatabaseState& state);

// A session calls begin_mark_write() before it writes the high-water mark, and end_mark_write()
// after the write and flush. If a write of the high-water mark ends with an error, the statistics
// count the write as running until the end of the transaction.
void begin_mark_write(DatabaseState& state);
void end_mark_write(bool flushed);
void reset_mark_write();
// Returns for how many microseconds writes of the high-water mark have been stalled, or 0.
int64_t mark_stalled_for_us(const Statistics& statistics);

}  // namespace snowflake::pg
