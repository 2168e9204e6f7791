#include "pg/shared_memory.hpp"

#include <new>

#include "core/clock.hpp"
#include "pg/memory/database_state.hpp"
#include "pg/server/settings.hpp"
#include "pg/memory/database_counters.hpp"
#include "pg/cursor/open_mints.hpp"

namespace snowflake::pg {

namespace {

constinit shmem_request_hook_type previous_request_hook = nullptr;
constinit shmem_startup_hook_type previous_startup_hook = nullptr;

using StartClockWatch = void (*)(ClockWatch&);
constinit StartClockWatch start_watching = nullptr;

constexpr char kName[] = "snowflake";

Size databases_size() {
  return mul_size(static_cast<Size>(max_databases), sizeof(DatabaseState));
}

Size statistics_size() {
  return mul_size(static_cast<Size>(max_databases) + 1, sizeof(Statistics));
}

Size total_size() {
  return add_size(add_size(add_size(sizeof(SharedState), databases_size()), statistics_size()),
                  mint_slots_size());
}

void request_shared_state() {
  if (previous_request_hook) previous_request_hook();
  RequestAddinShmemSpace(total_size());
  RequestNamedLWLockTranche(kName, 1);
}

// Also runs after a crash, when the postmaster initializes the memory again. Then all state is
// zero, and each database's mark is read at its next call.
void start_shared_state() {
  if (previous_startup_hook) previous_startup_hook();

  shared_state = nullptr;
  LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
  bool found = false;
  char* memory = static_cast<char*>(ShmemInitStruct(kName, total_size(), &found));
  const auto shared = reinterpret_cast<SharedState*>(memory);
  database_states = reinterpret_cast<DatabaseState*>(memory + sizeof(SharedState));
  memory += sizeof(SharedState) + databases_size();
  database_statistics = reinterpret_cast<Statistics*>(memory);
  place_mint_slots(memory + statistics_size(), found);
  if (!found) {
    new (shared) SharedState{};
    for (int i = 0; i < max_databases; ++i) new (&database_states[i]) DatabaseState{};
    shared->lock = &GetNamedLWLockTranche(kName)->lock;
    new (&database_statistics[max_databases]) Statistics{};
    shared->started_ms = wall_clock_ms();
    shared->started_us = boot_us();
    start_watching(shared->clock);
  }
  LWLockRelease(AddinShmemInitLock);
  shared_state = shared;
}

static_assert(sizeof(SharedState) % alignof(DatabaseState) == 0 &&
              sizeof(DatabaseState) % alignof(Statistics) == 0 && sizeof(Statistics) % 64 == 0);
static_assert(alignof(SharedState) <= PG_CACHE_LINE_SIZE);

}  // namespace

void install_shared_state(void (*start_clock_watch)(ClockWatch&)) {
  start_watching = start_clock_watch;
  previous_request_hook = shmem_request_hook;
  shmem_request_hook = request_shared_state;
  previous_startup_hook = shmem_startup_hook;
  shmem_startup_hook = start_shared_state;
}

}  // namespace snowflake::pg
