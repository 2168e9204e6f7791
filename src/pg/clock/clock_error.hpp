// How wrong the clock may be: what the kernel knows of it from NTP or PTP (adjtimex), or what the
// administrator says in snowflake.clock_error.
#pragma once

#include <cstdint>

#include "core/clock_bounds.hpp"

namespace snowflake::pg {

ClockBounds clock_bounds();

// snowflake.max_clock_error, in microseconds.
int64_t max_clock_error_us();

}  // namespace snowflake::pg
