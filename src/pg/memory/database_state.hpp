// A database that mints: what its sessions share of its high-water mark, and its words. A database
// is a generator of its own; nothing here is shared between two of them but the lock.
//
// This file owns that state. Locking rules
//  - atomics are read without a lock; all but `generation` and `limit` are also written without
//  one;
//  - the other fields, and every change of `generation` and `limit`, take shared_state->lock;
//  - nothing that can block (a heavyweight lock, a catalogue read, a flush) happens under it.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/atomic_max.hpp"
#include "core/limit.hpp"
#include "core/shard.hpp"
#include "pg/server/postgres.hpp"
#include "pg/server/settings.hpp"
#include "pg/memory/lease.hpp"
#include "pg/memory/shared_state.hpp"

namespace snowflake::pg {

// The sequence snowflake.high_water: relation, and its storage.
struct MarkIdentity {
  Oid relation;
  Oid storage;

  bool operator==(const MarkIdentity&) const = default;
};

struct alignas(64) DatabaseState {
  Oid database;                          // InvalidOid: a free place
  MarkIdentity mark;                     // what the limit was taken from
  std::atomic<uint32_t> generation;      // raised whenever published limits stop being good
  Limit limit;                           // positions below it may be claimed; rises in a generation
  std::atomic<int64_t> highest_mark_ms;  // greatest mark that was written or absorbed
  std::atomic<int64_t> floor_ms;         // greatest mark that was absorbed
  std::atomic<int64_t> seal_checked_us;  // when the seal was last found good (monotonic), or 0
  std::atomic<int64_t> fleet_checked_us;  // likewise that no other fleet's leases cover its ids
  std::atomic<int64_t> begin_ms;          // where ids of the region that is held begin here, or 0
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

// Takes limits from this mark from now on, whose stored value is `stored_ms`. Withdraws the limit
// where it came from another mark, or from a value that the stored one has been lowered below.
// Returns the generation, and the region that its ids are minted in. Where those begin is settled
// once for each holding of a region: what is published later is of other databases, or of these
// words.
struct MarkBinding {
  uint32_t generation;
  RegionHold region;
};
MarkBinding bind_mark(DatabaseState& state, MarkIdentity mark, int64_t stored_ms);

// Publishes the limit that follows from a mark which is durable, and from the lease; unless the
// generation is over: then false.
bool publish_limit(DatabaseState& state, uint32_t generation, int64_t mark_ms);

// Ends the generation: every session has to take hold of the mark anew.
void withdraw_limit(DatabaseState& state);
// The same of every database. Under shared_state->lock.
void withdraw_all_limits_under_lock();

}  // namespace snowflake::pg
