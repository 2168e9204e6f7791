// The state of a database that mints: the shard counters, the open transactions that have minted,
// the statistics, and the facts about the mark. All sessions of the database share the state. Each
// database is a separate generator. Two databases share only the lock.
//
// A state is a pinned segment of dynamic shared memory, for one database and one layout. A state is
// freed after the database was dropped, or after the extension was created again under another
// layout. Sessions that use the earlier layout can still use the memory of the old state.
//
// This file owns the states of all databases. Locking rules
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

// The sequence snowflake.high_water: the relation and storage of the sequence.
struct MarkIdentity {
  Oid relation;
  Oid storage;

  bool operator==(const MarkIdentity&) const = default;
};

// A session's record of its open transaction that has minted (open_mints.hpp). Backends with one
// backend number use the slot one after another.
struct alignas(64) MintSlot {
  OpenMints mints;
  std::atomic<int> pid;
};

// Followed by MaxBackends mint slots and the shard counters.
struct alignas(64) DatabaseState {
  Limits limits;
  std::atomic<int64_t> seal_checked_us;   // when the seal was last found valid (monotonic), or 0
  std::atomic<int64_t> fleet_checked_us;  // the same for the fleet
  std::atomic<bool> cloned;               // the last check found that the database is a clone
  Oid database;                           // constant
  int64_t seal;                           // of the layout; constant
  MintOrigin origin;                      // what the database mints
  LogLimit same_ids_checked;              // another database that mints the same ids
  LogLimit same_ids_logged;
  alignas(64) Settled settled;
  mutable Statistics statistics;

  // After reset_checks(), the next session checks seal and fleet without an earlier result.
  void reset_checks() {
    seal_checked_us.store(0, std::memory_order_relaxed);
    fleet_checked_us.store(0, std::memory_order_relaxed);
  }
  std::span<MintSlot> mint_slots() const;
  std::span<Shard> shard_counters() const;
};

// Returns the state of the current database for the present layout of the database's sessions, or
// null. The state stays mapped into this session. find_or_take returns null only if
// most_databases() other databases have a state. find_or_take also replaces a state of another
// layout than the session's layout, because the extension may have been created again. find_or_take
// REQUIRES a lock on the mark of the extension that has the session's layout.
DatabaseState* find_database_state();
DatabaseState* find_or_take_database_state();

// Whether the state has the session's layout.
bool is_of_session_layout(const DatabaseState& state);

// Calls `visit(state)` for every database that has a state. A state is mapped only during the call
// of `visit`.
void for_each_database(void (*visit)(const DatabaseState& state, void* argument), void* argument);
template <class Visit>
void for_each_database(Visit visit) {
  for_each_database(
      [](const DatabaseState& state, void* argument) { (*static_cast<Visit*>(argument))(state); },
      &visit);
}

// Returns whether find_or_take would return a state. Does not create a state.
bool has_or_may_take_state();

// The counter of a shard.
inline Shard& shard_counter(Shard* counters, uint32_t shard) {
  return counters[shard % kMaxShardCounters];
}
// After raise_floor(), every claimed position of the database is at least `position`.
void raise_floor(const DatabaseState& state, uint64_t position);

MarkIdentity mark_of(const DatabaseState& state);

// The shards that the database owned when this session last attached; none before the first attach.
extern ShardSet owned_shards;

// Returns the region and shards of the database. If the database has not chosen yet, returns the
// choice that this session would make.
struct OriginInUse {
  int32_t region;  // kNoRegion if the region is leased
  ShardSet shards;
  const char* invalid;  // the name of a setting that prevents this session from minting, or null

  // Whether region and shards have their default values.
  bool is_default() const { return region == 0 && shards.has_all(); }
};
OriginInUse origin_in_use();
// Returns region and shards of any database, if the session that chose the shards did not start
// before `than`.
std::optional<OriginInUse> chosen_origin(const DatabaseState& state, SessionStart than);

// These functions call the members of Limits, with the region of the database or the lease of this
// server. bind_mark() first lets the newest session choose the database's region and shards, and
// copies the shards to owned_shards.
MarkBinding bind_mark(DatabaseState& state, MarkIdentity mark, int64_t stored_ms);
bool publish_limit(DatabaseState& state, uint32_t generation, int64_t mark_ms);
void withdraw_limit(DatabaseState& state);

// Maps the states of all databases and takes the lock. If lock_all_databases() raises an error, the
// lock is not taken, and the end of the transaction unmaps the states. REQUIRES a transaction.
void lock_all_databases();
// Calls Limits::end_region() for every database. REQUIRES lock_all_databases().
void end_region_under_lock();
void unlock_all_databases();

}  // namespace snowflake::pg
