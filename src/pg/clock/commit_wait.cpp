#include "pg/clock/commit_wait.hpp"

#include "core/clock.hpp"
#include "pg/clock/clock_error.hpp"
#include "pg/errors/errors_clock_error.hpp"
#include "pg/memory/pending_counters.hpp"
#include "pg/server/settings.hpp"
#include "pg/memory/statistics.hpp"
#include "pg/server/wait_budget.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

void count_commit_wait(bool first, int64_t us) {
  const DatabaseState* const state = find_database_state();
  if (state == nullptr) return;
  Statistics& statistics = statistics_of(*state);
  statistics.commit_waits.fetch_add(first ? 1 : 0, std::memory_order_relaxed);
  statistics.commit_waited_us.fetch_add(static_cast<uint64_t>(us), std::memory_order_relaxed);
}

}  // namespace

void wait_before_commit() {
  const uint64_t id = highest_id_of_transaction;
  if (!commit_waits || id == 0) return;
  const int64_t over_us = layout.ms_of_tick(layout.tick_of(id) + 1) * 1000;
  WaitBudget budget;
  for (;;) {
    const ClockBounds bounds = clock_bounds();
    if (!bounds.synchronized) {
      error_commit_unsynchronized(bounds);
    }
    const int64_t clock_us = wall_clock_us();
    const int64_t needed_us = over_us + bounds.maximum_error_us + max_clock_error_us() - clock_us;
    if (needed_us <= 0) break;
    const int64_t needed_ms = (needed_us + 999) / 1000;
    if (needed_ms + budget.waited_ms() > max_wait_ms) {
      error_commit_wait(over_us / 1000 - layout.tick_ms, clock_us / 1000, bounds.maximum_error_us,
                        needed_ms, budget.waited_ms());
    }
    sleep_part(budget, needed_ms, clock_wait_event(), count_commit_wait);
  }
}

}  // namespace snowflake::pg
