// Contains the kernel's estimate of the error of the system clock.
#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <cstdint>

namespace snowflake {

struct ClockBounds {
  // True if the kernel or snowflake.clock_error shows a synchronized clock, and maximum_error_us is
  // at most snowflake.max_clock_error.
  bool synchronized;
  bool known;         // the fields below are set
  bool from_setting;  // the maximum error comes from the setting snowflake.clock_error
  int64_t offset_us;  // correction that the kernel will still make to the clock
  int64_t estimated_error_us;
  int64_t maximum_error_us;  // greatest possible difference from the true time
};

}  // namespace snowflake
