#include "pg/clock/synchronization.hpp"

#include "pg/clock/clock_error.hpp"
#include "pg/memory/postmaster_memory.hpp"
#include "pg/errors/errors_clock_error.hpp"
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
  const int64_t left_ms = max_wait_ms - budget.waited_ms();
  if (when_unsynchronized() == Unsynchronized::refuse || left_ms <= 0)
    error_mint_unsynchronized(clock_bounds(), budget.waited_ms());
  sleep_part(budget, left_ms, clock_wait_event(), [](bool, int64_t) {});
}

}  // namespace snowflake::pg
