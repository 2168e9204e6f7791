#pragma once

#include <cstdint>

#include "core/clock.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

struct WaitBudget {
  int64_t since_us = 0;  // the start of the wait on the monotonic clock; 0: not started

  // Returns the waited time, rounded down and reduced by 1 ms. Needed times are also rounded, and
  // rounding must not make an allowed wait fail.
  int64_t waited_ms() const;
};

// Sleeps for at most the given time and at most 100 ms. Returns the length of the sleep in
// microseconds.
int64_t sleep_on_latch(int64_t ms, uint32 wait_event);

// Sleeps like sleep_on_latch(), and then raises an error if the query was cancelled. `count(first,
// us)` is called before the error, so that cancelled waits are also counted.
template <class Count>
void sleep_part(WaitBudget& budget, int64_t ms, uint32 wait_event, Count count) {
  const bool first = budget.since_us == 0;
  if (first) budget.since_us = monotonic_us();
  const int64_t slept_us = sleep_on_latch(ms, wait_event);
  count(first, slept_us);
  CHECK_FOR_INTERRUPTS();
}

}  // namespace snowflake::pg
