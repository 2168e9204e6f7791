// How wrong a clock may be.
#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <cstdint>

namespace snowflake {

struct ClockBounds {
  bool synchronized;  // and the maximum error is within snowflake.max_clock_error
  bool known;         // the kernel, or the administrator, says something
  bool from_setting;  // the maximum error is snowflake.clock_error
  int64_t offset_us;  // what the kernel still has to correct
  int64_t estimated_error_us;
  int64_t maximum_error_us;  // the true time is no further from the clock
};

}  // namespace snowflake
