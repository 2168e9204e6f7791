// The wall clock: its steps are counted, refused when they go far ahead, and told to the log.
//
// The wall clock is compared with the time since boot, which is never stepped. The offset between
// the two at server start is the base, kept in the postmaster's memory, so that a crash restart
// neither forgives a jump nor forgets accept_clock(). core/clock_base.hpp says when a clock that
// was wrong at start is believed after all.
#pragma once

#include <cstdint>

namespace snowflake::pg {

struct ClockWatch;

void start_clock_watch(ClockWatch& watch);

// Counts a step, if there was one since somebody last looked. Every session looks when it begins to
// mint, whenever it sees the clock go back, and before the mark is extended, which is twice a
// second where anything mints.
void look_at_clock();

// For the log: whether the kernel has the clock as synchronized, and whether the layout lasts. Also
// whether the counter is still to be used. Called when the mark is extended.
void look_at_clock_error();

// Whether the clock is further ahead of the base than snowflake.max_forward_jump.
bool clock_jumped_ahead();
// Takes the present offset as the base.
void accept_clock();
// A stored mark, which may say that the clock was wrong at start.
void see_mark(int64_t mark_ms);
// Ids are minted under the clock; and whether any have been since the server started.
void vouch_for_clock();
bool clock_is_vouched_for();

}  // namespace snowflake::pg
