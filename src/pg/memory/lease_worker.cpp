#include "pg/memory/lease_worker.hpp"

#include "core/clock.hpp"
#include "core/clock_base.hpp"
#include "pg/memory/database_state.hpp"
#include "pg/memory/lease_state.hpp"
#include "pg/memory/postmaster_memory.hpp"
#include "pg/memory/shared_state.hpp"
#include "pg/errors/errors_lease.hpp"
#include "pg/errors/log_messages.hpp"
#include "pg/server/origin_settings.hpp"
#include "pg/server/settings.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

template <class EndLimits>
void start_incarnation(int64_t incarnation, const LeaseAnswer& newest, EndLimits end_limits) {
  postmaster_memory->lease.begin(incarnation, newest, end_limits);
  postmaster_memory->lease_born_us.store(monotonic_us(), std::memory_order_relaxed);
}

// Calls change() while the shared memory of all databases is mapped and locked. If change() raises
// an error, the end of the transaction unmaps the shared memory.
template <class Change>
void with_all_databases(Change change) {
  const MemoryContext context = CurrentMemoryContext;
  StartTransactionCommand();
  lock_all_databases();
  change();
  unlock_all_databases();
  CommitTransactionCommand();
  MemoryContextSwitchTo(context);
}

// A granted lease shows that the clocks of this server and of the lease server differed by at most
// "snowflake.max_skew". A granted lease therefore confirms this server's clock, as accept_clock()
// does. After the confirmation, calls that mint ids no longer fail because of an earlier clock
// jump. A granted lease does not confirm the clock if the clock jumped after the request for the
// lease.
void confirm_clock(int64_t asked_offset_us) {
  const int64_t drift_us = postmaster_memory->clock.drift_us(asked_offset_us);
  if (drift_us <= int64_t{max_forward_jump_s} * 1'000'000) return;
  postmaster_memory->clock.accept(asked_offset_us);
  log_clock_accepted(drift_us / 1000);
}

void begin(int64_t incarnation, const LeaseAnswer& newest) {
  with_all_databases([&] { start_incarnation(incarnation, newest, end_region_under_lock); });
}

void take(const LeaseAnswer& answer, int64_t fleet, int64_t asked_offset_us) {
  LWLockAcquire(&shared_state->lock, LW_EXCLUSIVE);
  postmaster_memory->lease_fleet.store(fleet, std::memory_order_relaxed);
  postmaster_memory->lease.take(answer);
  LWLockRelease(&shared_state->lock);
  confirm_clock(asked_offset_us);
}

void extend(const LeaseAnswer& answer, int64_t asked_offset_us) {
  postmaster_memory->lease.extend(answer);
  confirm_clock(asked_offset_us);
}

void record(const LeaseAnswer& answer) {
  postmaster_memory->lease.record(answer);
}

LeaseView forget() {
  LeaseView last{};
  with_all_databases([&] { last = postmaster_memory->lease.forget(end_region_under_lock); });
  return last;
}

void report(const LeaseReport& latest) {
  LWLockAcquire(&shared_state->lock, LW_EXCLUSIVE);
  shared_state->lease.report = latest;
  LWLockRelease(&shared_state->lock);
}

void stop_serving(int, Datum) {
  LWLockAcquire(&shared_state->lock, LW_EXCLUSIVE);
  if (shared_state->lease.worker == MyLatch) shared_state->lease.worker = nullptr;
  LWLockRelease(&shared_state->lock);
}

bool serve() {
  LWLockAcquire(&shared_state->lock, LW_EXCLUSIVE);
  const bool free = shared_state->lease.worker == nullptr;
  if (free) shared_state->lease.worker = MyLatch;
  LWLockRelease(&shared_state->lock);
  if (free) before_shmem_exit(stop_serving, Datum{0});
  return free;
}

bool is_urgent() {
  return shared_state->lease.urgent.exchange(false, std::memory_order_relaxed);
}

constinit LeasePort port{};

// The returned text is never freed, because the lease library uses the text until the server stops.
const char* regions_text() {
  char text[1024] = "{";
  size_t length = 1;
  for (size_t i = 0; i < leased_regions.count; ++i)
    for (uint32_t region = leased_regions.ranges[i].first;
         region <= leased_regions.ranges[i].last && length < sizeof(text) - 16; ++region)
      length += static_cast<size_t>(
          snprintf(text + length, sizeof(text) - length, "%s%u", length == 1 ? "" : ",", region));
  strlcat(text, "}", sizeof(text));
  return MemoryContextStrdup(TopMemoryContext, text);
}

}  // namespace

void install_lease() {
  if (!reports_region()) return;
  int64_t incarnation = 0;
  if (!pg_strong_random(&incarnation, sizeof(incarnation)))
    error_lease_settings("The server could not generate a random number.",
                         "Start the server again.");
  // The last argument, a callback that stops sessions from minting, is empty, because no session
  // exists at server start.
  start_incarnation((incarnation & INT64_MAX) | 1, LeaseAnswer{}, [] {});

  port = {SNOWFLAKE_VERSION,
          lease_conninfo,
          regions_text(),
          leased() ? nullptr : &configured_region,
          server_seal,
          lease_ms,
          max_skew_ms,
          &max_lead_ms,
          &reserve_ms,
          lease_view,
          lease_fleet,
          lease_age_ms,
          begin,
          take,
          extend,
          record,
          forget,
          report,
          serve,
          is_urgent};
  *find_rendezvous_variable(kLeasePortName) = &port;

  // The lease library is loaded at server start, so that an error stops the start instead of each
  // worker.
  using Install = void (*)();
  const auto install = reinterpret_cast<Install>(
      load_external_function("snowflake_lease", "snowflake_lease_install", true, nullptr));
  // In pg_upgrade and single-user mode, no client mints, so no lease is needed.
  if (!IsBinaryUpgrade && IsPostmasterEnvironment) install();
}

}  // namespace snowflake::pg
