#include "pg/memory/lease.hpp"

#include "core/clock.hpp"
#include "pg/memory/database_state.hpp"
#include "pg/refuse/errors_lease.hpp"
#include "pg/memory/postmaster_memory.hpp"
#include "pg/server/settings.hpp"
#include "pg/memory/shared_state.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

LeaseMemory& memory() {
  return postmaster_memory->lease;
}

void start_incarnation(int64_t incarnation, const LeaseAnswer& newest) {
  memory().begin(incarnation, newest);
  postmaster_memory->lease_born_us.store(monotonic_us(), std::memory_order_relaxed);
}

// What the port offers.

int64_t age_ms() {
  const int64_t born = postmaster_memory->lease_born_us.load(std::memory_order_relaxed);
  return (monotonic_us() - born) / 1000;
}

void begin(int64_t incarnation, const LeaseAnswer& newest) {
  LWLockAcquire(shared_state->lock, LW_EXCLUSIVE);
  withdraw_all_limits_under_lock();
  start_incarnation(incarnation, newest);
  LWLockRelease(shared_state->lock);
}

void take(const LeaseAnswer& answer, int64_t fleet) {
  LWLockAcquire(shared_state->lock, LW_EXCLUSIVE);
  postmaster_memory->lease_fleet.store(fleet, std::memory_order_relaxed);
  memory().take(answer);
  LWLockRelease(shared_state->lock);
}

void extend(const LeaseAnswer& answer) {
  memory().extend(answer);
}

void note(const LeaseAnswer& answer) {
  memory().note(answer);
}

LeaseView forget() {
  LWLockAcquire(shared_state->lock, LW_EXCLUSIVE);
  withdraw_all_limits_under_lock();
  const LeaseView last = memory().view();
  memory().forget();
  LWLockRelease(shared_state->lock);
  return last;
}

void report(const LeaseReport& news) {
  LWLockAcquire(shared_state->lock, LW_EXCLUSIVE);
  shared_state->lease.report = news;
  LWLockRelease(shared_state->lock);
}

void stop_serving(int, Datum) {
  LWLockAcquire(shared_state->lock, LW_EXCLUSIVE);
  if (shared_state->lease.worker == MyLatch) shared_state->lease.worker = nullptr;
  LWLockRelease(shared_state->lock);
}

bool serve() {
  LWLockAcquire(shared_state->lock, LW_EXCLUSIVE);
  const bool free = shared_state->lease.worker == nullptr;
  if (free) shared_state->lease.worker = MyLatch;
  LWLockRelease(shared_state->lock);
  if (free) before_shmem_exit(stop_serving, Datum{0});
  return free;
}

bool is_urgent() {
  return shared_state->lease.urgent.exchange(false, std::memory_order_relaxed);
}

constinit LeasePort port{};

}  // namespace

bool leased() {
  return fleet_conninfo[0] != '\0';
}

void install_lease() {
  if (!leased()) return;
  int64_t incarnation = 0;
  if (!pg_strong_random(&incarnation, sizeof(incarnation)))
    error_fleet_settings("No random number could be drawn.", "Start the server again.");
  start_incarnation((incarnation & INT64_MAX) | 1, LeaseAnswer{});

  port = {SNOWFLAKE_VERSION,
          fleet_conninfo,
          seal_of(layout),
          lease_ms,
          max_skew_ms,
          &max_lead_ms,
          &reserve_ms,
          lease_view,
          lease_fleet,
          age_ms,
          begin,
          take,
          extend,
          note,
          forget,
          report,
          serve,
          is_urgent};
  *find_rendezvous_variable(kLeasePortName) = &port;

  // Loaded here, so that what is missing or wrong stops the start, and not each worker.
  using Install = void (*)();
  const auto install = reinterpret_cast<Install>(
      load_external_function("$libdir/snowflake_lease", "snowflake_lease_install", true, nullptr));
  // Where nobody mints for clients there is nothing to lease: pg_upgrade, single-user mode.
  if (!IsBinaryUpgrade && IsPostmasterEnvironment) install();
}

LeaseView lease_view() {
  return memory().view();
}

bool lease_worker_runs() {
  LWLockAcquire(shared_state->lock, LW_SHARED);
  const bool runs = shared_state->lease.worker != nullptr;
  LWLockRelease(shared_state->lock);
  return runs;
}

LeaseReport lease_report() {
  LWLockAcquire(shared_state->lock, LW_SHARED);
  LeaseReport last = shared_state->lease.report;
  // What it said before it ended says nothing about now.
  if (shared_state->lease.worker == nullptr)
    strlcpy(last.message, "the lease worker is not running", sizeof(last.message));
  LWLockRelease(shared_state->lock);
  return last;
}

int64_t lease_fleet() {
  return postmaster_memory->lease_fleet.load(std::memory_order_relaxed);
}

int64_t fleet_to_remember() {
  if (!leased()) return 0;
  return lease_fleet() == 0 ? kUnheardFleet : lease_fleet();
}

int64_t lease_length_ms() {
  return grant_length(age_ms(), lease_ms + int64_t{max_lead_ms}, 0);
}

int64_t lease_until_ms() {
  return leased() ? memory().view().until_ms : INT64_MAX;
}

RegionHold region_under_lock() {
  if (!leased()) return {own_region, 0};
  const LeaseView lease = memory().view();
  return {lease.region, lease.highest_ms};
}

int64_t cover_under_lock(int64_t mark_ms) {
  if (!leased()) return mark_ms;
  const int64_t covered_ms = covered_until(mark_ms, memory().view().until_ms);
  memory().raise_highest(covered_ms);
  return covered_ms;
}

void wake_lease_worker() {
  shared_state->lease.urgent.store(true, std::memory_order_relaxed);
  LWLockAcquire(shared_state->lock, LW_SHARED);
  if (shared_state->lease.worker != nullptr) SetLatch(shared_state->lease.worker);
  LWLockRelease(shared_state->lock);
}

}  // namespace snowflake::pg
