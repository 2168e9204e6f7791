// The shared state of a database contains shard counters, open transactions that have minted,
// statistics, and the limit up to which sessions may mint ids. Two databases share only
// shared_state->lock.
//
// The shared state of a database is a pinned segment of dynamic shared memory, with shard counters
// for one id layout. The segment is freed after DROP DATABASE, or after CREATE EXTENSION with
// another id layout. After CREATE EXTENSION with another id layout, sessions that still use the old
// layout keep the old segment mapped.
//
// Locking rules
//
//  - The server-wide lock in core/limits.hpp is shared_state->lock. The page lock in
//    core/limits.hpp is the content lock of the page that contains the high-water mark.
//
//  - shared_state->lock protects the list of databases and the member `origin` of each database.
//    The members seal_checked_us and fleet_checked_us can be read and written without a lock.
//
//  - While a session holds shared_state->lock, the session must not wait for a heavyweight lock,
//    read the catalogue or flush.
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

struct MarkIdentity {
  Oid relation;
  Oid storage;

  bool operator==(const MarkIdentity&) const = default;
};

// Each session has an entry (slot) in shared memory, which shows whether its open transaction has
// minted (open_mints.hpp). Backends with the same process number use the same slot one after
// another.
struct alignas(64) MintSlot {
  OpenMints mints;
  std::atomic<int> pid;
};

// In the shared memory segment, DatabaseState is followed by MaxBackends entries (slots) of
// sessions and by the shard counters.
struct alignas(64) DatabaseState {
  Limits limits;
  std::atomic<int64_t> seal_checked_us;   // monotonic time of the last check of the layout, or 0
  std::atomic<int64_t> fleet_checked_us;  // time of the last fleet check (fleet_check.hpp), or 0
  std::atomic<bool> cloned;
  Oid database;       // constant
  int64_t seal;       // constant
  MintOrigin origin;  // the region and shards of the database
  LogLimit same_ids_checked;
  LogLimit same_ids_logged;
  alignas(64) Settled settled;
  mutable Statistics statistics;

  // After reset_checks(), the next call of attach() must check the stored layout and the fleet
  // (group of servers) of the database again.
  void reset_checks() {
    seal_checked_us.store(0, std::memory_order_relaxed);
    fleet_checked_us.store(0, std::memory_order_relaxed);
  }
  std::span<MintSlot> mint_slots() const;
  std::span<Shard> shard_counters() const;
};

// find_database_state() returns null if the database has no shared state.
//
// find_or_take_database_state() returns null only if the number of other databases with shared
// state has reached the limit, most_databases(). If the id layout in the shared state differs from
// the session's id layout, find_or_take_database_state() replaces the shared state. REQUIRES a lock
// on the sequence snowflake.high_water of the extension whose layout the session uses. The lock
// ensures that no other session drops this extension during the call.
DatabaseState* find_database_state();
DatabaseState* find_or_take_database_state();

bool is_of_session_layout(const DatabaseState& state);

// Calls `visit(state)` for every database with shared state. The states of all databases stay
// mapped until the last call of `visit`, because `visit` may call for_each_database().
void for_each_database(void (*visit)(const DatabaseState& state, void* argument), void* argument);
template <class Visit>
void for_each_database(Visit visit) {
  for_each_database(
      [](const DatabaseState& state, void* argument) { (*static_cast<Visit*>(argument))(state); },
      &visit);
}

bool has_or_may_take_state();

inline Shard& shard_counter(Shard* counters, uint32_t shard) {
  return counters[shard % kMaxShardCounters];
}
// After raise_floor() returns, no session can mint an id below `position` (tick and sequence
// number).
void raise_floor(const DatabaseState& state, uint64_t position);

MarkIdentity mark_of(const DatabaseState& state);

// Contains the shards that the database owned when this session last called attach(). Before the
// first call of attach(), owned_shards is empty.
extern ShardSet owned_shards;

// Returns the region and shards of the database, or the session's values of "snowflake.region" and
// "snowflake.owned_shards" if chosen_origin() returns no value.
struct OriginInUse {
  int32_t region;  // kNoRegion: leased
  ShardSet shards;
  const char* invalid;  // name of an invalid setting

  bool is_default() const { return region == 0 && shards.has_all(); }
};
OriginInUse origin_in_use();
// Returns the region and shards that bind_mark() has set for a database. Returns no value if every
// session that called bind_mark() started before the time `than`.
std::optional<OriginInUse> chosen_origin(const DatabaseState& state, SessionStart than);

// bind_mark() sets the region and shards of the database to the settings of the calling session.
// The function bind_mark() does not change region and shards if a session with the same or a later
// start time has already called bind_mark(). The function bind_mark() also stores the shard numbers
// of the database in owned_shards, a variable of the session.
MarkBinding bind_mark(DatabaseState& state, MarkIdentity mark, int64_t stored_ms);
bool publish_limit(DatabaseState& state, uint32_t generation, int64_t mark_ms);
void withdraw_limit(DatabaseState& state);

// Maps the shared state of all databases, and takes shared_state->lock. After an error,
// shared_state->lock is not held, and the end of the transaction unmaps the segments. REQUIRES a
// transaction.
void lock_all_databases();
void end_region_under_lock();
void unlock_all_databases();

}  // namespace snowflake::pg
