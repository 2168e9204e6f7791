// How wrong a clock may be.
#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <cstdint>

namespace snowflake {

struct ClockBounds {
  bool synchronized;  // as the kernel reports, and the error is at most snowflake.max_clock_error
  bool known;         // whether the kernel or a setting provides the fields below
  bool from_setting;  // whether the maximum error comes from the setting snowflake.clock_error
  int64_t offset_us;  // the correction that the kernel still has to make
  int64_t estimated_error_us;
  int64_t maximum_error_us;  // the largest possible difference between the true time and the clock
};

}  // namespace snowflake
