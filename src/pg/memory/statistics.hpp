// Counting what a database does, and saying what is due of it.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/obstacle.hpp"
#include "pg/memory/database_counters.hpp"
#include "pg/memory/database_state.hpp"

namespace snowflake::pg {

Statistics& statistics_of(const DatabaseState& state);
// Of the current database: null where it has no place.
Statistics& statistics_of(const DatabaseState* state);
// Starts the current database's counts anew; what goes on, goes on. Null where it has no place.
void reset_statistics(const DatabaseState* state);

// The refusals of the current database for a cause, with those of before it took its place.
struct RefusalsSeen {
  int64_t count;
  int64_t last_ms;   // 0: none
  int64_t since_ms;  // of the first one of those that go on, 0: none do
};
RefusalsSeen refusals_seen(const DatabaseState* state, Cause cause);

// Counts a refusal in the current database, and says in the log that refusals of this cause have
// begun. refuse() calls it before it raises the error. Takes no place: that is for minting.
void count_refusal(Obstacle obstacle);

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
