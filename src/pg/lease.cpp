#include "pg/lease.hpp"

#include "core/clock.hpp"
#include "pg/database_state.hpp"
#include "pg/errors_lease.hpp"
#include "pg/postmaster_memory.hpp"
#include "pg/settings.hpp"
#include "pg/shared_state.hpp"
#include "pg/statistics.hpp"
#include "pg/postgres.hpp"

namespace snowflake::pg {

namespace {

constexpr int kLongestSleepMs = 100;

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

void wake_worker() {
  shared_state->lease.urgent.store(true, std::memory_order_relaxed);
  LWLockAcquire(shared_state->lock, LW_SHARED);
  if (shared_state->lease.worker != nullptr) SetLatch(shared_state->lease.worker);
  LWLockRelease(shared_state->lock);
}

// False where the call has waited for too long already.
bool sleep_a_little(WaitBudget& budget, bool for_worker) {
  const int64_t now_us = monotonic_us();
  if (budget.since_us == 0) budget.since_us = now_us;
  const int64_t left_ms = max_wait_ms - (now_us - budget.since_us) / 1000;
  if (left_ms <= 0) return false;
  if (for_worker) wake_worker();
  (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
                  static_cast<long>(std::min<int64_t>(left_ms, kLongestSleepMs)),
                  lease_wait_event());
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

void wait_for_region(WaitBudget& budget) {
  if (sleep_a_little(budget, true)) return;
  count_refusal(Cause::lease);
  error_no_region(what_was_said());
}

void wait_for_begin(const RegionHold& region, WaitBudget& budget) {
  if (sleep_a_little(budget, false)) return;
  count_refusal(Cause::lease);
  error_region_begins_later(region.region, region.begin_ms, wall_clock_ms());
}

void wait_for_lease(uint64_t position, WaitBudget& budget) {
  if (sleep_a_little(budget, true)) return;
  count_refusal(Cause::lease);
  const LeaseView lease = lease_view();
  error_lease_ended(lease, layout.ms_of_tick(layout.tick_of_position(position)), wall_clock_ms(),
                    what_was_said());
}

}  // namespace snowflake::pg
