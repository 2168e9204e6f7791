#include "pg/memory/shared_state.hpp"

#include <new>

#include "core/clock.hpp"
#include "pg/errors/errors.hpp"
#include "pg/server/rejected_setting.hpp"

namespace snowflake::pg {

constinit SharedState* shared_state = nullptr;

namespace {

constexpr char kName[] = "snowflake";

// The library compares these ABI numbers with the numbers in the header of the shared memory. Raise
// `abi` with every change of a structure in shared memory, or of the rules for its use. The ABI
// numbers are volatile, so that the compiled code reads numbers that a test has changed in the
// library file.
struct Form {
  char name[16];
  uint32_t abi;
  int32_t most_databases;
};
constinit const volatile Form form{"snowflake form:", 1, kMostDatabases};

// The struct Header must not change, so that every version of the library can read the ABI number
// (shared_state.hpp, invariant 2). The pointer `state` is valid in all processes, because
// PostgreSQL maps its shared memory at one address.
struct alignas(PG_CACHE_LINE_SIZE) Header {
  uint32_t magic;
  uint32_t abi;
  SharedState* state;  // null: not created yet
};
static_assert(sizeof(Header) == PG_CACHE_LINE_SIZE && sizeof(void*) == 8);

constexpr uint32_t kMagic = 0x736e6f77;
constinit uint32_t abi_of_memory = 0;

using StartClockWatch = void (*)(ClockWatch&);
constinit StartClockWatch start_watching = nullptr;
constinit shmem_request_hook_type previous_request_hook = nullptr;
constinit shmem_startup_hook_type previous_startup_hook = nullptr;

// Returns null if PostgreSQL's main shared memory has no room for SharedState. REQUIRES
// AddinShmemInitLock.
SharedState* create_state() {
  void* const room = ShmemAllocNoError(sizeof(SharedState));
  if (room == nullptr) return nullptr;
  const auto state = new (room) SharedState{};
  LWLockInitialize(&state->lock, new_lock_tranche(kName));
  state->started_ms = wall_clock_ms();
  state->started_us = boot_us();
  state->of_server_run.clock.start(clock_offset_us());
  start_watching(state->clock);
  return state;
}

void request_room() {
  if (previous_request_hook) previous_request_hook();
  RequestAddinShmemSpace(add_size(sizeof(Header), sizeof(SharedState)));
}

// After a crash, PostgreSQL calls the startup hook again with zeroed shared memory. After a crash,
// the next call in a database reads the stored high-water mark again.
void open_at_start() {
  if (previous_startup_hook) previous_startup_hook();
  shared_state = nullptr;
  open_shared_state();
}

}  // namespace

// PostgreSQL has 64 segments of dynamic shared memory, and 5 more for each process. All databases
// together use at most 4 segments for each process, so that segments of shared memory are left for
// parallel queries.
int most_databases() {
  return std::min(int{form.most_databases}, 4 * MaxBackends);
}

Blocker try_open_shared_state() {
  if (shared_state != nullptr) return Blocker::none;
  if (const Blocker fault = rejected_setting.blocker; fault != Blocker::none) return fault;
  LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
  bool found = false;
  const auto header = static_cast<Header*>(ShmemInitStruct(kName, sizeof(Header), &found));
  if (!found) new (header) Header{};
  if (header->state == nullptr) {
    header->state = create_state();
    header->abi = form.abi;
    header->magic = kMagic;
  }
  const Header made = *header;
  LWLockRelease(AddinShmemInitLock);
  if (made.state == nullptr) return Blocker::no_shared_memory;
  abi_of_memory = made.abi;
  if (made.magic != kMagic || made.abi != form.abi) return Blocker::other_library;
  register_lock_tranche(made.state->lock.tranche, kName);
  if (postmaster_memory == nullptr) postmaster_memory = &made.state->of_server_run;
  shared_state = made.state;
  return Blocker::none;
}

void open_shared_state() {
  switch (try_open_shared_state()) {
    case Blocker::none:
      return;
    case Blocker::no_shared_memory:
      error_no_shared_memory(sizeof(SharedState));
    case Blocker::other_library:
      error_other_library(abi_of_memory, form.abi);
    default:
      error_setting_rejected(rejected_setting);
  }
}

void install_shared_state(void (*start_clock_watch)(ClockWatch&)) {
  start_watching = start_clock_watch;
  if (!process_shared_preload_libraries_in_progress) return;
  previous_request_hook = shmem_request_hook;
  shmem_request_hook = request_room;
  previous_startup_hook = shmem_startup_hook;
  shmem_startup_hook = open_at_start;
}

}  // namespace snowflake::pg
