// Decides whether the processor's time stamp counter may replace readings of the kernel's clock.
#pragma once

#include "core/counter.hpp"

namespace snowflake::pg {

struct ClockWatch;

// The name of the kernel's clock source is empty if the kernel does not report the name.
struct ClockSource {
  char name[64];
};
ClockSource clock_source();

void find_counter(ClockWatch& watch);

// Reads the kernel's clock source again, because the clock source may change while the machine
// runs.
void check_counter(ClockWatch& watch);

bool counter_is_used();

}  // namespace snowflake::pg
