// A database that mints: what its sessions share of its high-water mark, and its words. A database
// is a generator of its own; nothing here is shared between two of them but the lock.
//
// This file owns that state. Locking rules
//  - "the lock" of core/limits.hpp is shared_state->lock, "the page" the content lock of the
//    mark's page;
//  - `database` takes shared_state->lock, the times of the checks none;
//  - nothing that can block (a heavyweight lock, a catalogue read, a flush) happens under it.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/limits.hpp"
#include "core/settled.hpp"
#include "core/shard.hpp"
#include "pg/server/postgres.hpp"
#include "pg/server/settings.hpp"
#include "pg/memory/lease_state.hpp"
#include "pg/memory/shared_state.hpp"

namespace snowflake::pg {

// The sequence snowflake.high_water: relation, and its storage.
struct MarkIdentity {
  Oid relation;
  Oid storage;

  bool operator==(const MarkIdentity&) const = default;
};

struct alignas(64) DatabaseState {
  Limits limits;
  std::atomic<int64_t> seal_checked_us;   // when the seal was last found good (monotonic), or 0
  std::atomic<int64_t> fleet_checked_us;  // likewise that no other fleet's leases cover its ids
  std::atomic<bool> copied;               // as found last: it minted elsewhere before
  Oid database;                           // InvalidOid: a free place
  alignas(64) Settled settled;            // apart from what every claim reads

  // The next session that asks checks seal and fleet itself.
  void forget_checks() {
    seal_checked_us.store(0, std::memory_order_relaxed);
    fleet_checked_us.store(0, std::memory_order_relaxed);
  }
};

// The state of the current database. Null where it has none, which for find_or_take means that all
// of snowflake.max_databases places are taken by databases that exist.
DatabaseState* find_database_state();
Oid holder_of(const DatabaseState& state);
DatabaseState* find_or_take_database_state();

// Calls `visit(state)` for every database that holds a place.
template <class Visit>
void for_each_database(Visit visit) {
  for (int i = 0; i < max_databases; ++i)
    if (OidIsValid(holder_of(database_states[i]))) visit(database_states[i]);
}

// Whether find_or_take would find a place, without taking one.
bool has_or_may_take_place();

// The words of a database: word_count() of them, and the one that a shard uses.
Shard* words_of(const DatabaseState& state);
inline Shard& word_of(Shard* words, uint32_t shard) {
  return words[shard % kMaxWords];
}
// Makes every later position of every shard of the database at least `position`.
void raise_floor(const DatabaseState& state, uint64_t position);

MarkIdentity mark_of(const DatabaseState& state);

// As the members of Limits, with the region or the lease of this server.
MarkBinding bind_mark(DatabaseState& state, MarkIdentity mark, int64_t stored_ms);
bool publish_limit(DatabaseState& state, uint32_t generation, int64_t mark_ms);
void withdraw_limit(DatabaseState& state);

// Limits::end_region() of every database. Under shared_state->lock.
void end_region_under_lock();

}  // namespace snowflake::pg
