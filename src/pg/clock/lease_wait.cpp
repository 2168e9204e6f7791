#include "pg/clock/lease_wait.hpp"

#include "core/clock.hpp"
#include "pg/errors/errors_lease.hpp"
#include "pg/memory/lease_state.hpp"
#include "pg/server/settings.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

bool sleep_a_little(WaitBudget& budget, bool for_worker) {
  const int64_t left_ms = max_wait_ms - budget.waited_ms();
  if (left_ms <= 0) return false;
  if (for_worker) wake_lease_worker();
  sleep_part(budget, left_ms, lease_wait_event(), [](bool, int64_t) {});
  return true;
}

// Only members of pg_monitor see messages of the lease server, because the messages may contain
// host and role names.
const char* visible_message() {
  if (!has_privs_of_role(GetUserId(), ROLE_PG_MONITOR))
    return "hidden, because only members of pg_monitor may read the message.";
  const LeaseReport last = lease_report();
  return pstrdup(last.message);
}

}  // namespace

void wait_for_lease(Blocker blocker, const Facts& facts, WaitBudget& budget) {
  if (sleep_a_little(budget, blocker != Blocker::region_begins_later)) return;
  const int64_t clock_ms = wall_clock_ms();
  if (blocker == Blocker::region_begins_later)
    error_region_begins_later(facts.region, facts.region_begin_ms, clock_ms);
  if (blocker == Blocker::lease_ended)
    error_lease_ended(
        lease_view(),
        std::max(clock_ms, layout.ms_of_tick(layout.tick_of_position(facts.position))), clock_ms,
        visible_message());
  error_no_region(blocker, visible_message());
}

}  // namespace snowflake::pg
