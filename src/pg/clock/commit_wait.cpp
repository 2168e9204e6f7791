#include "pg/clock/commit_wait.hpp"

#include "core/clock.hpp"
#include "pg/clock/clock_bounds.hpp"
#include "pg/refuse/errors_clock_error.hpp"
#include "pg/memory/pending_counters.hpp"
#include "pg/server/settings.hpp"
#include "pg/memory/statistics.hpp"
#include "pg/clock/wait.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

// As it goes on: a wait that is cancelled was one as well.
void count_commit_wait(bool first, int64_t us) {
  const DatabaseState* const state = find_database_state();
  if (state == nullptr) return;
  Statistics& statistics = statistics_of(*state);
  if (first) statistics.commit_waits.fetch_add(1, std::memory_order_relaxed);
  statistics.commit_waited_us.fetch_add(static_cast<uint64_t>(us), std::memory_order_relaxed);
}

}  // namespace

void wait_before_commit() {
  const uint64_t id = highest_id_of_transaction;
  if (!commit_waits || id == 0) return;
  const int64_t over_us = layout.ms_of_tick(layout.tick_of(id) + 1) * 1000;
  int64_t since_us = 0;
  for (;;) {
    const ClockBounds bounds = clock_bounds();
    if (!bounds.synchronized) {
      error_commit_unsynchronized(bounds);
    }
    const int64_t clock_us = wall_clock_us();
    const int64_t needed_us = over_us + bounds.maximum_error_us + max_clock_error_us() - clock_us;
    if (needed_us <= 0) break;
    const int64_t needed_ms = (needed_us + 999) / 1000;
    const int64_t now_us = monotonic_us();
    // A millisecond of grace, as in every wait: one that was granted must not fail by rounding.
    const int64_t waited_ms =
        since_us == 0 ? 0 : std::max<int64_t>(0, (now_us - since_us) / 1000 - 1);
    if (needed_ms + waited_ms > max_wait_ms) {
      error_commit_wait(over_us / 1000 - layout.tick_ms, clock_us / 1000, bounds.maximum_error_us,
                        needed_ms, waited_ms);
    }
    const bool first = since_us == 0;
    if (first) since_us = now_us;
    (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
                    static_cast<long>(std::min(needed_ms, kLongestSleepMs)), clock_wait_event());
    ResetLatch(MyLatch);
    count_commit_wait(first, monotonic_us() - now_us);
    CHECK_FOR_INTERRUPTS();
  }
}

}  // namespace snowflake::pg
