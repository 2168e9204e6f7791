// How wrong the clock may be: what the kernel knows of it from NTP or PTP (adjtimex), or what the
// administrator says in snowflake.clock_error.
#pragma once

#include <cstdint>

namespace snowflake::pg {

struct ClockBounds {
  bool synchronized;  // and the maximum error is within snowflake.max_clock_error
  bool known;         // the kernel, or the administrator, says something
  bool from_setting;  // the maximum error is snowflake.clock_error
  int64_t offset_us;  // what the kernel still has to correct
  int64_t estimated_error_us;
  int64_t maximum_error_us;  // the true time is no further from the clock
};

ClockBounds clock_bounds();

// snowflake.max_clock_error, in microseconds.
int64_t max_clock_error_us();

}  // namespace snowflake::pg
