// Decides whether the processor's time stamp counter may show how long a clock reading is valid.
#pragma once

#include "core/counter.hpp"

namespace snowflake::pg {

struct ClockWatch;

// The name of the kernel's clock source is empty if the kernel does not report the name.
struct ClockSource {
  char name[64];
};
ClockSource clock_source();

// Called at server start. Decides whether the processor's counter is used, and logs the decision.
void find_counter(ClockWatch& watch);

// Reads the kernel's clock source again, which may change while the machine runs, and logs a
// change.
void check_counter(ClockWatch& watch);

bool counter_is_used();

}  // namespace snowflake::pg
