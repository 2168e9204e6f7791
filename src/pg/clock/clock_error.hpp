// The maximum error of the clock is the kernel's value from NTP or PTP (adjtimex), or the setting
// "snowflake.clock_error".
#pragma once

#include <cstdint>

#include "core/clock_bounds.hpp"

namespace snowflake::pg {

ClockBounds clock_bounds();

int64_t max_clock_error_us();

}  // namespace snowflake::pg
