// Counts and logs steps of the wall clock, and prevents minting after large steps ahead.
//
// The wall clock is compared with the time since boot, which is never stepped. The clock base is
// the difference between the wall clock and the time since boot at server start. The clock base is
// in the postmaster's memory, so a crash restart does not change the clock base. The file
// core/clock_base.hpp defines when a clock that was wrong at server start is accepted.
#pragma once

#include <cstdint>

namespace snowflake::pg {

struct ClockWatch;

void start_clock_watch(ClockWatch& watch);

// Detects whether the clock was stepped since the last call of check_clock() in any session, and
// counts the step. A session calls check_clock() before its first id, before a raise of the
// high-water mark, and when the clock goes back.
void check_clock();

// A session calls check_clock_error() when it raises the high-water mark. The function
// check_clock_error() logs changes of the clock's synchronization and of the kernel's clock source.
// The function check_clock_error() also logs a message if the time range of the layout ends within
// a year.
void check_clock_error();

// Returns whether the clock has jumped ahead by more than "snowflake.max_forward_jump" since its
// offset was last recorded (core/clock_base.hpp). The offset is recorded at server start, by
// accept_clock(), by a granted lease, and when check_clock() accepts a corrected clock.
bool clock_jumped_ahead();
void accept_clock();
// Compares a stored high-water mark with the clock, because a stored mark can show that the clock
// was wrong at server start.
void record_mark(int64_t mark_ms);
// clock_is_in_use() returns whether any id was minted in this server run.
void record_clock_use();
bool clock_is_in_use();

}  // namespace snowflake::pg
