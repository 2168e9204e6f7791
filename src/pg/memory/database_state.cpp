#include "core/clock_base.hpp"
#include "core/seal.hpp"
#include "pg/memory/database_state.hpp"

#include <new>

#include "pg/server/settings.hpp"
#include "pg/memory/database_counters.hpp"
#include "pg/memory/lease_state.hpp"
#include "pg/memory/postmaster_memory.hpp"

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

uint32_t shard_counter_count(const Layout& of) {
  return std::min(of.shards(), kMaxShardCounters);
}

// Frees the slots of dropped databases, and their shard counters. No backend uses one, because a
// database with sessions cannot be dropped.
void free_slots_of_dropped_databases() {
  for (int i = 0; i < max_databases; ++i) {
    DatabaseState& state = database_states[i];
    const Oid database = holder_of(state);
    if (!OidIsValid(database) || database_exists(database)) continue;
    dsm_handle counters = 0;
    LWLockAcquire(shared_state->lock, LW_EXCLUSIVE);
    if (state.database == database) {
      counters = state.counters;
      state.database = InvalidOid;
      state.seal = 0;
      state.counters = 0;
      end_generation(state);
    }
    LWLockRelease(shared_state->lock);
    if (counters != 0) dsm_unpin_segment(counters);
  }
}

// Creates the shard counters of a layout, all zero. An error leaves nothing behind.
dsm_segment* make_counters(const Layout& of) {
  const Size size =
      add_size(sizeof(CounterMemory), mul_size(shard_counter_count(of), sizeof(Shard)));
  dsm_segment* const segment = dsm_create(size, 0);
  const auto memory = new (dsm_segment_address(segment)) CounterMemory{};
  for (uint32_t i = 0; i < shard_counter_count(of); ++i) new (&memory->counters()[i]) Shard{};
  return segment;
}

// Replaces the shard counters of the state, and returns the former ones. Those say nothing about
// ids of another layout. A mark is adopted again; a dropped one is still remembered. REQUIRES the
// exclusive lock.
dsm_handle set_counters(DatabaseState& state, dsm_handle counters, int64_t seal) {
  const dsm_handle before = state.counters;
  if (state.database == MyDatabaseId)
    postmaster_memory->lost_marks.raise(MyDatabaseId, state.limits.highest_ms());
  else
    clear_statistics(static_cast<int>(&state - database_states));
  state.limits.start_database();
  end_generation(state);
  state.cloned.store(false, std::memory_order_relaxed);
  state.counters = counters;
  state.seal = seal;
  state.database = MyDatabaseId;
  return before;
}

// Null if no slot is free.
DatabaseState* take_database_slot() {
  const int64_t seal = seal_of(layout);
  dsm_segment* const segment = make_counters(layout);
  dsm_pin_segment(segment);
  const dsm_handle made = dsm_segment_handle(segment);
  dsm_handle unused = made;
  LWLockAcquire(shared_state->lock, LW_EXCLUSIVE);
  DatabaseState* state = state_of(MyDatabaseId);
  if (state == nullptr) state = state_of(InvalidOid);
  if (state != nullptr && !(state->database == MyDatabaseId && state->seal == seal))
    unused = set_counters(*state, made, seal);
  LWLockRelease(shared_state->lock);
  if (unused == made)
    dsm_detach(segment);
  else
    dsm_pin_mapping(segment);
  if (unused != 0) dsm_unpin_segment(unused);
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

int64_t seal_of_counters(const DatabaseState& state) {
  LWLockAcquire(shared_state->lock, LW_SHARED);
  const int64_t seal = state.seal;
  LWLockRelease(shared_state->lock);
  return seal;
}

DatabaseState* find_or_take_database_state() {
  DatabaseState* const state = find_database_state();
  if (state != nullptr && seal_of_counters(*state) == seal_of(layout)) {
    counter_memory_of(*state);  // maps it, because an error does no harm here
    return state;
  }
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

namespace {

struct KnownCounters {
  CounterMemory* memory;
  int64_t seal;
};

// Another session may replace the memory at any time.
KnownCounters map_counters(const DatabaseState& state) {
  for (;;) {
    LWLockAcquire(shared_state->lock, LW_SHARED);
    const dsm_handle handle = state.counters;
    const int64_t seal = state.seal;
    LWLockRelease(shared_state->lock);
    if (handle == 0) return {nullptr, 0};
    dsm_segment* segment = dsm_find_mapping(handle);
    if (segment == nullptr) {
      segment = dsm_attach(handle);
      if (segment == nullptr) continue;
      dsm_pin_mapping(segment);
    }
    return {static_cast<CounterMemory*>(dsm_segment_address(segment)), seal};
  }
}

}  // namespace

CounterMemory* counter_memory_of(const DatabaseState& state) {
  const KnownCounters known = map_counters(state);
  return known.seal == seal_of(layout) ? known.memory : nullptr;
}

std::span<Shard> shard_counters_of(CounterMemory& memory) {
  return {memory.counters(), shard_counter_count(layout)};
}

std::span<Shard> shard_counters_of(const DatabaseState& state) {
  const KnownCounters known = map_counters(state);
  if (known.memory == nullptr) return {};
  return {known.memory->counters(), shard_counter_count(layout_of(known.seal))};
}

void raise_floor(const DatabaseState& state, uint64_t position) {
  for (Shard& counter : shard_counters_of(state)) counter.raise_floor(position);
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
