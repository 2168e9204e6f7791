#pragma once

#include <atomic>
#include <cstdint>

#include "core/blocker.hpp"
#include "pg/memory/database_counters.hpp"
#include "pg/memory/database_state.hpp"

namespace snowflake::pg {

Statistics& statistics_of(const DatabaseState& state);
// A null state means a database without a slot.
Statistics& statistics_of(const DatabaseState* state);
// Resets the counters of the current database, except the counters of refusals that continue.
void reset_statistics(const DatabaseState* state);

// Returns the refusals of the current database for a cause, including refusals before the database
// had a slot.
struct RefusalsSeen {
  int64_t count;
  int64_t last_ms;   // 0: none
  int64_t since_ms;  // first refusal of a series that continues; 0: none
};
RefusalsSeen refusals_seen(const DatabaseState* state, Cause cause);

// Counts a refusal in the current database, and logs the first refusal of a series. A counted
// refusal creates no state for the database, because only minting creates a state.
void count_refusal(Blocker blocker);

// Records the end of refusals when the database mints. Refusals of the whole database end now, and
// other refusals end after some seconds without a refusal.
void end_refusals(const DatabaseState& state);

// Called when a session begins to write the mark, and may then wait for the flush. After an error,
// the write ends with the transaction.
void begin_mark_write(DatabaseState& state);
// Counts a flush, if the call waited for the flush.
void end_mark_write(bool flushed);
void reset_mark_write();
// Returns for how many microseconds no session has finished a write of the mark, or 0 without a
// writer.
int64_t mark_stalled_for_us(const Statistics& statistics);

}  // namespace snowflake::pg
