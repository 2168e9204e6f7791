#include "pg/clock/synchronization.hpp"

#include "core/clock.hpp"
#include "pg/clock/clock_bounds.hpp"
#include "pg/memory/postmaster_memory.hpp"
#include "pg/refuse/errors_clock_error.hpp"
#include "pg/server/settings.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

bool lacks_synchronization() {
  if (when_unsynchronized() == Unsynchronized::mint) return false;
  std::atomic<bool>& was = postmaster_memory->clock_was_synchronized;
  if (when_unsynchronized() == Unsynchronized::wait_at_start && was.load(std::memory_order_relaxed))
    return false;
  const bool is = clock_bounds().synchronized;
  if (is) was.store(true, std::memory_order_relaxed);
  return !is;
}

void wait_for_synchronization(WaitBudget& budget) {
  CHECK_FOR_INTERRUPTS();
  const int64_t now_us = monotonic_us();
  if (budget.since_us == 0) budget.since_us = now_us;
  const int64_t waited_ms = (now_us - budget.since_us) / 1000;
  if (when_unsynchronized() == Unsynchronized::refuse || waited_ms >= max_wait_ms)
    error_mint_unsynchronized(clock_bounds());
  (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
                  static_cast<long>(std::min(max_wait_ms - waited_ms, kLongestSleepMs)),
                  clock_wait_event());
  ResetLatch(MyLatch);
}

}  // namespace snowflake::pg
