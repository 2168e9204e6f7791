// The state of a database that mints: shard counters, open transactions that have minted,
// statistics, and facts about the mark. All sessions of the database share the state. Two databases
// share only the lock.
//
// A state is a pinned segment of dynamic shared memory, for one database and one layout. The state
// is freed after the database was dropped, or after the extension was created again with another
// layout. Sessions of the earlier layout can still use the memory of the old state.
//
// Locking rules
//  - "the lock" of core/limits.hpp is shared_state->lock, "the page" the content lock of the
//    mark's page;
//  - shared_state->lock protects the list of databases, and `origin` of each; the times of the
//    checks need no lock;
//  - while code holds shared_state->lock, the code must not wait for a heavyweight lock, read the
//    catalogue or flush.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

#include "core/limits.hpp"
#include "core/mint_origin.hpp"
#include "core/settled.hpp"
#include "core/shard.hpp"
#include "pg/server/postgres.hpp"
#include "pg/server/settings.hpp"
#include "pg/memory/database_counters.hpp"
#include "pg/memory/lease_state.hpp"
#include "pg/memory/shared_state.hpp"

namespace snowflake::pg {

// The relation and storage of the sequence snowflake.high_water.
struct MarkIdentity {
  Oid relation;
  Oid storage;

  bool operator==(const MarkIdentity&) const = default;
};

// Records a session's open transaction that has minted (open_mints.hpp). Backends with the same
// backend number use the slot one after another.
struct alignas(64) MintSlot {
  OpenMints mints;
  std::atomic<int> pid;
};

// The segment continues with MaxBackends mint slots and the shard counters.
struct alignas(64) DatabaseState {
  Limits limits;
  std::atomic<int64_t> seal_checked_us;   // when the seal was last found valid (monotonic), or 0
  std::atomic<int64_t> fleet_checked_us;  // the same for the fleet
  std::atomic<bool> cloned;               // the last check found that the database is a clone
  Oid database;                           // constant
  int64_t seal;                           // constant
  MintOrigin origin;                      // the region and shards of the database
  LogLimit same_ids_checked;
  LogLimit same_ids_logged;
  alignas(64) Settled settled;
  mutable Statistics statistics;

  // Makes the next session check seal and fleet again.
  void reset_checks() {
    seal_checked_us.store(0, std::memory_order_relaxed);
    fleet_checked_us.store(0, std::memory_order_relaxed);
  }
  std::span<MintSlot> mint_slots() const;
  std::span<Shard> shard_counters() const;
};

// find_database_state() returns null if the current database has no state. The state stays mapped
// into this session.
//
// find_or_take_database_state() returns null only if most_databases() other databases have a state.
// A state of another layout is replaced, because the extension may have been created again.
// REQUIRES a lock on the mark of the extension that has the session's layout.
DatabaseState* find_database_state();
DatabaseState* find_or_take_database_state();

bool is_of_session_layout(const DatabaseState& state);

// Calls `visit(state)` for every database that has a state, which is mapped only during `visit`.
void for_each_database(void (*visit)(const DatabaseState& state, void* argument), void* argument);
template <class Visit>
void for_each_database(Visit visit) {
  for_each_database(
      [](const DatabaseState& state, void* argument) { (*static_cast<Visit*>(argument))(state); },
      &visit);
}

// Returns whether find_or_take_database_state() would return a state.
bool has_or_may_take_state();

inline Shard& shard_counter(Shard* counters, uint32_t shard) {
  return counters[shard % kMaxShardCounters];
}
// After raise_floor(), every claimed position of the database is at least `position`.
void raise_floor(const DatabaseState& state, uint64_t position);

MarkIdentity mark_of(const DatabaseState& state);

// The shards that the database owned when this session last attached, or none before the first
// attach.
extern ShardSet owned_shards;

// Returns the region and shards of the database, or this session's choice if the database has none
// yet.
struct OriginInUse {
  int32_t region;  // kNoRegion if the region is leased
  ShardSet shards;
  const char* invalid;  // a setting that prevents this session from minting, or null

  bool is_default() const { return region == 0 && shards.has_all(); }
};
OriginInUse origin_in_use();
// Returns region and shards of any database, unless the session that chose them started before
// `than`.
std::optional<OriginInUse> chosen_origin(const DatabaseState& state, SessionStart than);

// These functions call the members of Limits, with the region of the database or the server's
// lease. bind_mark() first lets the newest session choose region and shards, and copies the shards
// to owned_shards.
MarkBinding bind_mark(DatabaseState& state, MarkIdentity mark, int64_t stored_ms);
bool publish_limit(DatabaseState& state, uint32_t generation, int64_t mark_ms);
void withdraw_limit(DatabaseState& state);

// Maps the states of all databases and takes the lock. After an error, the lock is not held, and
// the end of the transaction unmaps the states. REQUIRES a transaction.
void lock_all_databases();
// Calls Limits::end_region() for every database. REQUIRES lock_all_databases().
void end_region_under_lock();
void unlock_all_databases();

}  // namespace snowflake::pg
