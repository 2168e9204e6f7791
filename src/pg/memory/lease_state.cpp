#include "pg/memory/lease_state.hpp"

#include "core/blocker.hpp"
#include "core/clock.hpp"
#include "pg/memory/postmaster_memory.hpp"
#include "pg/server/settings.hpp"
#include "pg/memory/shared_state.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

bool leased() {
  return leased_regions.count != 0;
}

bool reports_region() {
  return lease_conninfo[0] != '\0';
}

int64_t lease_age_ms() {
  const int64_t born = postmaster_memory->lease_born_us.load(std::memory_order_relaxed);
  return (monotonic_us() - born) / 1000;
}

LeaseView lease_view() {
  return postmaster_memory->lease.view();
}

bool lease_worker_runs() {
  LWLockAcquire(&shared_state->lock, LW_SHARED);
  const bool runs = shared_state->lease.worker != nullptr;
  LWLockRelease(&shared_state->lock);
  return runs;
}

LeaseReport lease_report() {
  LWLockAcquire(&shared_state->lock, LW_SHARED);
  LeaseReport last = shared_state->lease.report;
  // The last message of a lease worker is out of date if the worker has ended.
  if (shared_state->lease.worker == nullptr)
    strlcpy(last.message, "the background worker \"snowflake lease\" is not running",
            sizeof(last.message));
  LWLockRelease(&shared_state->lock);
  return last;
}

const char* region_conflict() {
  const LeaseReport last = lease_report();
  return last.conflict[0] == '\0' ? nullptr : pstrdup(last.conflict);
}

int64_t lease_fleet() {
  return postmaster_memory->lease_fleet.load(std::memory_order_relaxed);
}

int64_t fleet_to_remember() {
  if (!leased()) return 0;
  return lease_fleet() == 0 ? kUnheardFleet : lease_fleet();
}

int64_t lease_length_ms() {
  return grant_length(lease_age_ms(), lease_ms + int64_t{max_lead_ms});
}

int64_t lease_until_ms() {
  return leased() ? postmaster_memory->lease.view().until_ms : INT64_MAX;
}

RegionHold leased_region_under_lock() {
  return postmaster_memory->lease.region();
}

LeaseMemory* limiting_lease() {
  return leased() ? &postmaster_memory->lease : nullptr;
}

void wake_lease_worker() {
  shared_state->lease.urgent.store(true, std::memory_order_relaxed);
  LWLockAcquire(&shared_state->lock, LW_SHARED);
  if (shared_state->lease.worker != nullptr) SetLatch(shared_state->lease.worker);
  LWLockRelease(&shared_state->lock);
}

}  // namespace snowflake::pg
