// The state of a database that mints: its shard counters, and the facts about its mark that its
// sessions share. Each database is a separate generator. Two databases share only the lock.
//
// This file owns that state. Locking rules
//  - "the lock" of core/limits.hpp is shared_state->lock, "the page" the content lock of the
//    mark's page;
//  - shared_state->lock protects `database`, `seal` and `counters`; the times of the checks need no
//    lock;
//  - no code under it may block: no heavyweight lock, catalogue read or flush.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "core/limits.hpp"
#include "core/settled.hpp"
#include "core/shard.hpp"
#include "pg/server/postgres.hpp"
#include "pg/server/settings.hpp"
#include "pg/memory/lease_state.hpp"
#include "pg/memory/shared_state.hpp"

namespace snowflake::pg {

// The sequence snowflake.high_water: its relation and storage.
struct MarkIdentity {
  Oid relation;
  Oid storage;

  bool operator==(const MarkIdentity&) const = default;
};

struct alignas(64) DatabaseState {
  Limits limits;
  std::atomic<int64_t> seal_checked_us;   // when the seal was last found valid (monotonic), or 0
  std::atomic<int64_t> fleet_checked_us;  // the same for the fleet
  std::atomic<bool> cloned;               // the last result: it minted elsewhere before
  Oid database;                           // InvalidOid: a free slot
  int64_t seal;                           // of the shard counters' layout, or 0
  dsm_handle counters;                    // the memory of the shard counters; 0 without a seal

  // Lets the next session check seal and fleet itself.
  void reset_checks() {
    seal_checked_us.store(0, std::memory_order_relaxed);
    fleet_checked_us.store(0, std::memory_order_relaxed);
  }
};

// The state of the current database, or null. From find_or_take, null means that existing databases
// use all slots of snowflake.max_databases. find_or_take also replaces the shard counters if they
// have another layout than the session, because the extension may have been created again. This
// REQUIRES a lock on the mark of the extension that has the session's layout.
DatabaseState* find_database_state();
Oid holder_of(const DatabaseState& state);
DatabaseState* find_or_take_database_state();
int64_t seal_of_counters(const DatabaseState& state);

// Calls `visit(state)` for every database that has a slot.
template <class Visit>
void for_each_database(Visit visit) {
  for (int i = 0; i < max_databases; ++i)
    if (OidIsValid(holder_of(database_states[i]))) visit(database_states[i]);
}

// Whether find_or_take would find a slot, without taking one.
bool has_or_may_take_slot();

// The shard counters of a database and its settled tick. They belong to one layout and have a
// memory of their own. Sessions that began under an earlier layout keep the memory of that layout.
struct CounterMemory {
  alignas(64) Settled settled;

  Shard* counters() { return reinterpret_cast<Shard*>(this + 1); }
};
static_assert(sizeof(CounterMemory) % alignof(Shard) == 0);

// The memory, mapped into this session permanently; or null if the database has none of the
// session's layout.
CounterMemory* counter_memory_of(const DatabaseState& state);
std::span<Shard> shard_counters_of(CounterMemory& memory);
// The same of any layout, or none.
std::span<Shard> shard_counters_of(const DatabaseState& state);
// The counter of a shard.
inline Shard& shard_counter(Shard* counters, uint32_t shard) {
  return counters[shard % kMaxShardCounters];
}
// Makes every later position of every shard of the database at least `position`.
void raise_floor(const DatabaseState& state, uint64_t position);

MarkIdentity mark_of(const DatabaseState& state);

// The members of Limits, with the region or the lease of this server.
MarkBinding bind_mark(DatabaseState& state, MarkIdentity mark, int64_t stored_ms);
bool publish_limit(DatabaseState& state, uint32_t generation, int64_t mark_ms);
void withdraw_limit(DatabaseState& state);

// Calls Limits::end_region() for every database. REQUIRES shared_state->lock.
void end_region_under_lock();

}  // namespace snowflake::pg
