// The time that a call has waited for its next id, or that a commit has waited for the clock. Calls
// and commits wait only in sleep().
#pragma once

#include <cstdint>

#include "core/clock.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

struct WaitBudget {
  int64_t since_us = 0;  // when the wait began, on the monotonic clock; 0: not yet

  // Returns the time waited, rounded down and reduced by 1 ms. The needed time is also rounded, and
  // an allowed wait must not fail because of the rounding.
  int64_t waited_ms() const;
};

// Sleeps for the given time, or for a part of the time, because the wait may end early. Returns the
// length of the sleep in us.
int64_t sleep_on_latch(int64_t ms, uint32 wait_event);

// Like sleep_on_latch(), but interruptible. The function calls `count(first, us)` before the
// function handles an interrupt, so that cancelled waits are also counted.
template <class Count>
void sleep_part(WaitBudget& budget, int64_t ms, uint32 wait_event, Count count) {
  const bool first = budget.since_us == 0;
  if (first) budget.since_us = monotonic_us();
  const int64_t slept_us = sleep_on_latch(ms, wait_event);
  count(first, slept_us);
  CHECK_FOR_INTERRUPTS();
}

}  // namespace snowflake::pg
