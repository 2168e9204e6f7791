// Decides whether the processor's counter may show how long a clock reading is valid.
#pragma once

#include "core/counter.hpp"

namespace snowflake::pg {

struct ClockWatch;

// The kernel's clock source; "" if the system does not name it.
struct ClockSource {
  char name[64];
};
ClockSource clock_source();

// At server start: measures the counter, reads the processor's flags, and logs what is decided.
void find_counter(ClockWatch& watch);

// Reads the kernel's clock source again, which may change while the machine runs. Logs a change.
void check_counter(ClockWatch& watch);

// Whether the counter is used: as decided, unless snowflake.use_tsc is off.
bool counter_is_used();

}  // namespace snowflake::pg
