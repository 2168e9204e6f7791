#pragma once

#include <cstdint>

#include "core/clock.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

struct WaitBudget {
  int64_t since_us = 0;  // monotonic clock; 0: not waiting

  // Returns how many milliseconds the call has waited. The result is reduced by 1 ms, so that
  // rounding never causes an error before "snowflake.max_wait" has passed.
  int64_t waited_ms() const;
};

// Sleeps for `ms` milliseconds, but at most 100 ms. Returns the length of the sleep in
// microseconds.
int64_t sleep_on_latch(int64_t ms, uint32 wait_event);

// Sleeps like sleep_on_latch(), and then processes interrupts such as a cancelled query. The
// function `count(first, us)` is called before interrupts are processed, so that cancelled waits
// are also counted.
template <class Count>
void sleep_part(WaitBudget& budget, int64_t ms, uint32 wait_event, Count count) {
  const bool first = budget.since_us == 0;
  if (first) budget.since_us = monotonic_us();
  const int64_t slept_us = sleep_on_latch(ms, wait_event);
  count(first, slept_us);
  CHECK_FOR_INTERRUPTS();
}

}  // namespace snowflake::pg
