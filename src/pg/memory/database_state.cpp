#include "pg/memory/database_state.hpp"

#include <new>

#include "pg/server/settings.hpp"
#include "pg/memory/database_counters.hpp"
#include "pg/memory/lease_state.hpp"

namespace snowflake::pg {

namespace {

// REQUIRES the lock in any mode.
DatabaseState* state_of(Oid database) {
  for (int i = 0; i < max_databases; ++i)
    if (database_states[i].database == database) return &database_states[i];
  return nullptr;
}

// A mark as a number; 0 for none.
uint64_t number_of(MarkIdentity mark) {
  return uint64_t{mark.relation} << 32 | mark.storage;
}

// REQUIRES the exclusive lock.
void end_generation(DatabaseState& state) {
  state.limits.withdraw();
  state.reset_checks();
}

bool database_exists(Oid database) {
  return SearchSysCacheExists1(DATABASEOID, ObjectIdGetDatum(database));
}

// Frees the slots of dropped databases. No backend uses one, because a database with sessions
// cannot be dropped.
void free_slots_of_dropped_databases() {
  for (int i = 0; i < max_databases; ++i) {
    DatabaseState& state = database_states[i];
    const Oid database = holder_of(state);
    if (!OidIsValid(database) || database_exists(database)) continue;
    LWLockAcquire(shared_state->lock, LW_EXCLUSIVE);
    if (state.database == database) {
      state.database = InvalidOid;
      end_generation(state);
    }
    LWLockRelease(shared_state->lock);
  }
}

DatabaseState* take_database_slot() {
  LWLockAcquire(shared_state->lock, LW_EXCLUSIVE);
  DatabaseState* state = state_of(MyDatabaseId);
  if (state == nullptr) {
    state = state_of(InvalidOid);
    if (state != nullptr) {
      state->limits.start_database();
      state->cloned.store(false, std::memory_order_relaxed);
      new (&state->settled) Settled{};
      Shard* const counters = shard_counters_of(*state);
      for (uint32_t i = 0; i < shard_counter_count(); ++i) new (&counters[i]) Shard{};
      clear_statistics(static_cast<int>(state - database_states));
      state->database = MyDatabaseId;
    }
  }
  LWLockRelease(shared_state->lock);
  return state;
}

}  // namespace

Oid holder_of(const DatabaseState& state) {
  LWLockAcquire(shared_state->lock, LW_SHARED);
  const Oid database = state.database;
  LWLockRelease(shared_state->lock);
  return database;
}

DatabaseState* find_database_state() {
  LWLockAcquire(shared_state->lock, LW_SHARED);
  DatabaseState* const state = state_of(MyDatabaseId);
  LWLockRelease(shared_state->lock);
  return state;
}

DatabaseState* find_or_take_database_state() {
  if (DatabaseState* state = find_database_state()) return state;
  if (DatabaseState* state = take_database_slot()) return state;
  free_slots_of_dropped_databases();
  return take_database_slot();
}

bool has_or_may_take_slot() {
  if (find_database_state() != nullptr) return true;
  for (int i = 0; i < max_databases; ++i) {
    const Oid database = holder_of(database_states[i]);
    if (!OidIsValid(database) || !database_exists(database)) return true;
  }
  return false;
}

Shard* shard_counters_of(const DatabaseState& state) {
  return all_shard_counters + static_cast<size_t>(&state - database_states) * shard_counter_count();
}

void raise_floor(const DatabaseState& state, uint64_t position) {
  Shard* const counters = shard_counters_of(state);
  for (uint32_t i = 0; i < shard_counter_count(); ++i) counters[i].raise_floor(position);
}

MarkIdentity mark_of(const DatabaseState& state) {
  LWLockAcquire(shared_state->lock, LW_SHARED);
  const uint64_t number = state.limits.mark();
  LWLockRelease(shared_state->lock);
  return {static_cast<Oid>(number >> 32), static_cast<Oid>(number)};
}

MarkBinding bind_mark(DatabaseState& state, MarkIdentity mark, int64_t stored_ms) {
  LWLockAcquire(shared_state->lock, LW_EXCLUSIVE);
  const uint32_t before = state.limits.generation();
  const MarkBinding binding = state.limits.bind(number_of(mark), stored_ms, region_under_lock());
  if (binding.generation != before) state.reset_checks();
  LWLockRelease(shared_state->lock);
  return binding;
}

bool publish_limit(DatabaseState& state, uint32_t generation, int64_t mark_ms) {
  LWLockAcquire(shared_state->lock, LW_EXCLUSIVE);
  const bool current = state.limits.publish(layout, generation, mark_ms, limiting_lease());
  LWLockRelease(shared_state->lock);
  return current;
}

void withdraw_limit(DatabaseState& state) {
  LWLockAcquire(shared_state->lock, LW_EXCLUSIVE);
  end_generation(state);
  LWLockRelease(shared_state->lock);
}

void end_region_under_lock() {
  for (int i = 0; i < max_databases; ++i) {
    DatabaseState& state = database_states[i];
    if (!OidIsValid(state.database)) continue;
    state.limits.end_region();
    state.reset_checks();
  }
}

}  // namespace snowflake::pg
