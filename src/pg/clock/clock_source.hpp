// Decides whether the processor's counter may show how long a clock reading is valid.
#pragma once

#include "core/counter.hpp"

namespace snowflake::pg {

struct ClockWatch;

// The kernel's clock source; "" if the system does not name the clock source.
struct ClockSource {
  char name[64];
};
ClockSource clock_source();

// Called at server start: measures the counter, reads the processor's flags, decides whether the
// counter is used, and logs the decision.
void find_counter(ClockWatch& watch);

// Reads the kernel's clock source again, because the clock source may change while the machine
// runs. Logs a change.
void check_counter(ClockWatch& watch);

// Whether the counter is used: the decision of the server start, or false if snowflake.use_tsc is
// off.
bool counter_is_used();

}  // namespace snowflake::pg
