// All sessions of a server use the struct SharedState in shared memory, which contains a lock and
// the list of the databases that mint. The first process that needs the shared state creates it in
// the spare room of PostgreSQL's main shared memory. Each database that mints also has its own
// segment of shared memory (database_state.hpp).
//
// Invariants
//
//  1. The name of the library's shared memory contains no version, so that a server run has only
//     one shared memory of this library. If two versions of the library used separate shared
//     memories, both could mint the same ids for a database.
//
//  2. The header of the shared memory never changes its form. After a package was upgraded under a
//     running server, new sessions load another library. If the ABI numbers of the library and of
//     the shared memory differ, calls fail.
//
//  3. The shared memory is published when its initialization is complete. If the creation of the
//     shared memory fails, the next call tries again.
//
//  4. When the shared state of a database is created, its ids begin at the high-water mark on disk,
//     never at a value from shared memory.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/blocker.hpp"
#include "core/counter.hpp"
#include "core/shard.hpp"
#include "pg/memory/database_counters.hpp"
#include "pg/memory/lease_port.hpp"
#include "pg/memory/postmaster_memory.hpp"
#include "pg/errors/log_limit.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

inline constexpr int kMostDatabases = 1024;
int most_databases();

// Counts the steps of the wall clock. A clock offset is the wall clock minus the time since boot,
// in microseconds.
struct ClockWatch {
  std::atomic<int64_t> last_offset_us;
  std::atomic<uint64_t> backward_steps;
  std::atomic<int64_t> largest_backward_us;
  std::atomic<uint64_t> forward_steps;
  std::atomic<int64_t> largest_forward_us;
  std::atomic<int64_t> behind_until_ms;  // the time that the clock showed before a step back, or 0
  Episode behind;
  Episode ahead;
  Episode unsynchronized;
  LogLimit end_is_near;
  std::atomic<CounterUse> counter_use;
  int64_t counter_cost_ns;
  bool counter_is_constant;
  LogLimit stepped_ahead;
  LogLimit stepped_back;  // limits messages about a clock set back by at most "snowflake.max_lead"
};

// All members of LeaseStatus REQUIRE shared_state->lock, except `urgent`.
struct LeaseStatus {
  Latch* worker;  // null: the lease worker does not run
  std::atomic<bool> urgent;
  LeaseReport report;
};

// REQUIRES shared_state->lock.
struct DatabaseEntry {
  Oid database;
  dsm_handle memory;  // the segment with the DatabaseState
};

struct alignas(PG_CACHE_LINE_SIZE) SharedState {
  LWLock lock;  // database_state.hpp has the locking rules
  ClockWatch clock;
  LeaseStatus lease;
  int64_t started_ms;  // wall clock
  int64_t started_us;  // time since boot

  // The first `database_count` entries of `databases` are used, in any order. `databases_version`
  // increases with each change of the list of databases. The list of databases and
  // `databases_version` REQUIRE shared_state->lock.
  int database_count;
  uint32_t databases_version;
  DatabaseEntry databases[kMostDatabases];

  // Counts the refused calls in databases that have no shared state.
  Statistics statistics_of_the_rest;

  // If the library is not preloaded, the pointer postmaster_memory points to `of_server_run`. If
  // the library is preloaded, `of_server_run` is not used.
  PostmasterMemory of_server_run;
};

// PostgreSQL reserves 100 kB of its main shared memory for libraries that are loaded later. If the
// size of SharedState changes, raise the ABI number in shared_state.cpp.
static_assert(sizeof(SharedState) < 40000);

// The pointer shared_state is null until the session has called open_shared_state().
extern SharedState* shared_state;

// If the library is preloaded, the postmaster reserves and creates the shared memory of the
// library.
void install_shared_state(void (*start_clock_watch)(ClockWatch&));

// Finds or creates the shared memory of the library. Returns a blocker (state that prevents
// minting) if the session must not use the extension's shared memory. Raises an error if
// PostgreSQL's main shared memory has no room for the struct Header (shared_state.cpp).
Blocker try_open_shared_state();
// open_shared_state() raises an error if try_open_shared_state() returns a blocker (state that
// prevents minting).
void open_shared_state();
inline void require_shared_state() {
  if (shared_state == nullptr) [[unlikely]]
    open_shared_state();
}

// If a layout has more shards than kMaxShardCounters, several shards share a counter. Ids of shards
// that share a counter differ in the shard bits.
inline constexpr uint32_t kMaxShardCounters = 65536;

}  // namespace snowflake::pg
