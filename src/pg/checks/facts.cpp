#include "core/clock_base.hpp"
#include "pg/checks/facts.hpp"

#include "core/clock.hpp"
#include "pg/clock/clock_watch.hpp"
#include "pg/clock/lease_wait.hpp"
#include "pg/clock/synchronization.hpp"
#include "pg/memory/database_state.hpp"
#include "pg/memory/lease_state.hpp"
#include "pg/memory/postmaster_memory.hpp"
#include "pg/errors/errors.hpp"
#include "pg/errors/errors_clone.hpp"
#include "pg/errors/errors_lease.hpp"
#include "pg/errors/errors_routing.hpp"
#include "pg/server/settings.hpp"

namespace snowflake::pg {

namespace {

void gather_lease(Facts& facts) {
  const LeaseView lease = lease_view();
  facts.lease_worker_runs = lease_worker_runs();
  facts.region = lease.region;
  // New ids may begin at the start of the lease (floor_ms). The time lease.highest_ms is not used,
  // because it is normally ahead of the clock.
  facts.region_begin_ms = std::max(lease.floor_ms, facts.region_begin_ms);
  facts.lease_until_ms = lease.until_ms;
  facts.leased_seal = server_seal;
  facts.fleet_present = lease_fleet();
}

}  // namespace

void gather_server_facts(Facts& facts) {
  const OriginInUse origin = origin_in_use();
  facts.setting_invalid = origin.invalid != nullptr;
  facts.node_without_origin = origin.is_default() && citus_preloaded;
  facts.clock_ms = wall_clock_ms();
  facts.max_lead_ms = max_lead_ms;
  facts.clock_jumped = clock_jumped_ahead();
  facts.unsynchronized = lacks_synchronization();
  facts.clones_refused = refuse_clones();
  facts.leased = leased();
  facts.region = origin.region;
  if (const DatabaseState* const state = find_database_state())
    facts.region_begin_ms = state->limits.begin_ms();
  if (facts.leased) gather_lease(facts);
}

Facts facts_of_server() {
  Facts facts{};
  gather_server_facts(facts);
  return facts;
}

bool is_in_the_way(const Facts& facts, WaitBudget& budget, Relation mark) {
  const Blocker found = blocker(layout, facts);
  if (found == Blocker::none) return false;
  if (mark != nullptr) relation_close(mark, RowExclusiveLock);
  switch (found) {
    case Blocker::setting_invalid:
      error_setting_invalid(origin_in_use().invalid);
    case Blocker::node_without_origin:
      error_node_without_origin();
    case Blocker::clock_before_epoch:
      error_clock_before_epoch(facts.clock_ms);
    case Blocker::layout_exhausted:
      error_exhausted();
    case Blocker::clock_jumped:
      error_clock_jumped(clock_drift_us() / 1000);
    case Blocker::unsynchronized:
      wait_for_synchronization(budget);
      return true;
    case Blocker::lease_worker_gone:
    case Blocker::no_region:
    case Blocker::region_begins_later:
    case Blocker::lease_ended:
      wait_for_lease(found, facts, budget);
      return true;
    case Blocker::seal_unset:
    case Blocker::seal_restored:
    case Blocker::seal_not_carried:
      error_of_seal(found, facts.seals);
    case Blocker::region_outside_layout:
      error_region_outside_layout(facts.region);
    case Blocker::layout_not_leased:
      error_layout_not_leased(facts.leased_seal);
    case Blocker::fleet_left:
      error_fleet_left(facts.fleet_remembered);
    case Blocker::other_fleet:
      error_other_fleet(facts.fleet_remembered, facts.fleet_present);
    case Blocker::cloned:
      error_cloned(facts.moved);
    case Blocker::mark_not_permanent:
    case Blocker::mark_uncommitted:
    case Blocker::extension_recreated:
      error_of_mark(found);
    case Blocker::mark_lost:
      error_mark_unset(facts.mark_ms);
    case Blocker::mark_ahead:
      wait_for_mark(facts.mark_ms, budget);
      return true;
    case Blocker::too_many_databases:
      error_too_many_databases(most_databases());
    default:
      elog(ERROR, "unexpected blocker %d", static_cast<int>(found));
  }
  return true;
}

bool is_ahead_of_clock(int64_t mark_ms) {
  return is_ahead_of_clock(layout, mark_ms, wall_clock_ms(), max_lead_ms);
}

}  // namespace snowflake::pg
