#include "pg/clock/lease_wait.hpp"

#include "core/clock.hpp"
#include "pg/refuse/errors_lease.hpp"
#include "pg/server/settings.hpp"
#include "pg/memory/statistics.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

// False where the call has waited for too long already.
bool sleep_a_little(WaitBudget& budget, bool for_worker) {
  const int64_t now_us = monotonic_us();
  if (budget.since_us == 0) budget.since_us = now_us;
  const int64_t left_ms = max_wait_ms - (now_us - budget.since_us) / 1000;
  if (left_ms <= 0) return false;
  if (for_worker) wake_lease_worker();
  (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
                  static_cast<long>(std::min(left_ms, kLongestSleepMs)), lease_wait_event());
  ResetLatch(MyLatch);
  CHECK_FOR_INTERRUPTS();
  return true;
}

// Names hosts and roles of the control database, as the connection string does.
const char* what_was_said() {
  if (!has_privs_of_role(GetUserId(), ROLE_PG_MONITOR))
    return "what members of pg_monitor may read.";
  const LeaseReport last = lease_report();
  return pstrdup(last.message);
}

}  // namespace

void wait_for_lease(Obstacle obstacle, const Facts& facts, WaitBudget& budget) {
  if (sleep_a_little(budget, obstacle != Obstacle::region_begins_later)) return;
  const int64_t clock_ms = wall_clock_ms();
  if (obstacle == Obstacle::region_begins_later)
    error_region_begins_later(facts.region, facts.region_begin_ms, clock_ms);
  if (obstacle == Obstacle::lease_ended)
    error_lease_ended(
        lease_view(),
        std::max(clock_ms, layout.ms_of_tick(layout.tick_of_position(facts.position))), clock_ms,
        what_was_said());
  error_no_region(obstacle, what_was_said());
}

}  // namespace snowflake::pg
