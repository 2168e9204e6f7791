// Counts the calls of a database, and writes log messages that are due.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/blocker.hpp"
#include "pg/memory/database_counters.hpp"
#include "pg/memory/database_state.hpp"

namespace snowflake::pg {

Statistics& statistics_of(const DatabaseState& state);
// The statistics of the current database; null without a slot.
Statistics& statistics_of(const DatabaseState* state);
// Resets the counters of the current database, except the counters of refusals that continue. Null
// without a slot.
void reset_statistics(const DatabaseState* state);

// Returns the refusals of the current database for a cause, including the refusals before the
// database took its slot.
struct RefusalsSeen {
  int64_t count;
  int64_t last_ms;   // 0: none
  int64_t since_ms;  // time of the first refusal of a series that continues; 0: none
};
RefusalsSeen refusals_seen(const DatabaseState* state, Cause cause);

// Counts a refusal in the current database, and logs that refusals of the cause have begun.
// refuse() calls this function before refuse() raises the error. A counted refusal creates no state
// for the database, because only minting creates a state.
void count_refusal(Blocker blocker);

// Called when the database mints. Records the end of refusals. The refusals of a cause that
// concerns the whole database end now. The refusals of another cause end if the cause has not
// occurred for some seconds.
void end_refusals(const DatabaseState& state);

// Called when a session begins to write the mark. The session may then wait for the flush of the
// mark. After an error, the write ends with the transaction.
void begin_mark_write(DatabaseState& state);
// Counts a flush, if the call waited for the flush.
void end_mark_write(bool flushed);
void reset_mark_write();
// Returns the time since a session has finished a write of the mark, in microseconds; 0 if no
// session is writing the mark.
int64_t mark_stalled_for_us(const Statistics& statistics);

}  // namespace snowflake::pg
