// Watches the wall clock: counts and logs steps of the wall clock, and refuses large steps ahead.
//
// The wall clock is compared with the time since boot, which is never stepped. The base is the
// offset between the wall clock and the time since boot at server start. The base is in the
// postmaster's memory, so a crash restart neither accepts a jump nor loses an accept_clock().
// core/clock_base.hpp decides when a clock that was wrong at start is accepted.
#pragma once

#include <cstdint>

namespace snowflake::pg {

struct ClockWatch;

void start_clock_watch(ClockWatch& watch);

// Counts a step since the last check of any session. A session calls check_clock() when the session
// begins to mint, when the session reads an earlier time than before, and before the session raises
// the mark. While a database mints, a session raises the database's mark twice a second.
void check_clock();

// Logs whether the kernel reports the clock as synchronized, and whether the layout ends soon.
// Checks whether the counter may still be used. Called when the mark is raised.
void check_clock_error();

// Whether the clock is further ahead of the base than snowflake.max_forward_jump.
bool clock_jumped_ahead();
// Sets the base to the present offset.
void accept_clock();
// Reports a stored mark, which may show that the clock was wrong at start.
void record_mark(int64_t mark_ms);
// The first function records that ids are minted. The second function returns whether any ids were
// minted since the server started.
void record_clock_use();
bool clock_is_in_use();

}  // namespace snowflake::pg
