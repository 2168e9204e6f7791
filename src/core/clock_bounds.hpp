// How wrong a clock may be.
#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <cstdint>

namespace snowflake {

struct ClockBounds {
  bool synchronized;  // the kernel reports it, and the error is within snowflake.max_clock_error
  bool known;         // whether the kernel or a setting provides the values below
  bool from_setting;  // whether snowflake.clock_error is the maximum error
  int64_t offset_us;  // the correction that the kernel still has to make
  int64_t estimated_error_us;
  int64_t maximum_error_us;  // the largest distance of the true time from the clock
};

}  // namespace snowflake
