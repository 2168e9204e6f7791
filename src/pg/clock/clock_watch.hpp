// Counts and logs steps of the wall clock, and refuses large steps ahead.
//
// The wall clock is compared with the time since boot, which is never stepped. The base is the
// offset between the two clocks at server start. The base is in the postmaster's memory, so a crash
// restart neither accepts a jump nor loses an accept_clock(). core/clock_base.hpp decides when a
// clock that was wrong at start is accepted.
#pragma once

#include <cstdint>

namespace snowflake::pg {

struct ClockWatch;

void start_clock_watch(ClockWatch& watch);

// Counts a step of the clock since the last check of any session. A session calls check_clock()
// when it begins to mint, after an earlier clock reading than before, and before it raises the
// mark.
void check_clock();

// Called when the mark is raised. Logs a change of the clock's synchronization, and a layout that
// ends soon. Checks whether the processor's counter may still be used.
void check_clock_error();

// Returns whether the clock is ahead of the base by more than "snowflake.max_forward_jump".
bool clock_jumped_ahead();
void accept_clock();
// Uses a stored mark to detect that the clock was wrong at start.
void record_mark(int64_t mark_ms);
// clock_is_in_use() returns whether any id was minted in this server run.
void record_clock_use();
bool clock_is_in_use();

}  // namespace snowflake::pg
