#include "pg/shared_state.hpp"

#include <new>

#include "core/clock.hpp"
#include "pg/clock_watch.hpp"
#include "pg/errors.hpp"
#include "pg/settings.hpp"

namespace snowflake::pg {

constinit SharedState* state = nullptr;
constinit Slot* slots = nullptr;
constinit Shard* shards = nullptr;

namespace {

constinit shmem_request_hook_type previous_request_hook = nullptr;
constinit shmem_startup_hook_type previous_startup_hook = nullptr;

constexpr char kName[] = "snowflake";

Size slots_size() {
  return mul_size(static_cast<Size>(max_databases), sizeof(Slot));
}
Size shards_size() {
  return mul_size(word_count(), sizeof(Shard));
}

Size total_size() {
  return add_size(sizeof(SharedState), add_size(slots_size(), shards_size()));
}

void request_shared_state() {
  if (previous_request_hook) previous_request_hook();
  RequestAddinShmemSpace(total_size());
  RequestNamedLWLockTranche(kName, 1);
}

// Also runs after a crash, when the postmaster lays the memory out afresh: everything starts from
// zero, and each database's mark is read again at its next call.
void start_shared_state() {
  if (previous_startup_hook) previous_startup_hook();

  state = nullptr;
  LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
  bool found = false;
  char* memory = static_cast<char*>(ShmemInitStruct(kName, total_size(), &found));
  const auto shared = reinterpret_cast<SharedState*>(memory);
  slots = reinterpret_cast<Slot*>(memory + sizeof(SharedState));
  shards = reinterpret_cast<Shard*>(memory + sizeof(SharedState) + slots_size());
  if (!found) {
    new (shared) SharedState{};
    for (int i = 0; i < max_databases; ++i) new (&slots[i]) Slot{};
    for (uint32_t i = 0; i < word_count(); ++i) new (&shards[i]) Shard{};
    shared->lock = &GetNamedLWLockTranche(kName)->lock;
    start_clock_watch(shared->clock);
  }
  LWLockRelease(AddinShmemInitLock);
  state = shared;
}

static_assert(sizeof(SharedState) % alignof(Slot) == 0 && sizeof(Slot) % alignof(Shard) == 0);
static_assert(alignof(SharedState) <= PG_CACHE_LINE_SIZE);

Slot* slot_of(Oid database) {
  for (int i = 0; i < max_databases; ++i)
    if (slots[i].database == database) return &slots[i];
  return nullptr;
}

// Gives the slots of dropped databases back. No backend can hold one: a database with sessions
// cannot be dropped.
void free_slots_of_dropped_databases() {
  for (int i = 0; i < max_databases; ++i) {
    LWLockAcquire(state->lock, LW_SHARED);
    const Oid database = slots[i].database;
    LWLockRelease(state->lock);
    if (!OidIsValid(database) || SearchSysCacheExists1(DATABASEOID, ObjectIdGetDatum(database)))
      continue;
    LWLockAcquire(state->lock, LW_EXCLUSIVE);
    if (slots[i].database == database) {
      slots[i].database = slots[i].mark = slots[i].mark_storage = InvalidOid;
      slots[i].limit.withdraw();
      slots[i].known_ms.store(0, std::memory_order_relaxed);
      slots[i].floor_ms.store(0, std::memory_order_relaxed);
      slots[i].seal_checked.store(0, std::memory_order_relaxed);
      slots[i].generation.fetch_add(1, std::memory_order_release);
    }
    LWLockRelease(state->lock);
  }
}

Slot* take_slot() {
  LWLockAcquire(state->lock, LW_EXCLUSIVE);
  Slot* slot = slot_of(MyDatabaseId);
  if (slot == nullptr) {
    slot = slot_of(InvalidOid);
    if (slot != nullptr) slot->database = MyDatabaseId;
  }
  LWLockRelease(state->lock);
  return slot;
}

}  // namespace

uint32_t word_count() {
  return std::min(layout.shards(), kMaxWords);
}

void lift_words(uint64_t floor) {
  for (uint32_t i = 0; i < word_count(); ++i) shards[i].lift(floor);
}

void install_shared_state() {
  previous_request_hook = shmem_request_hook;
  shmem_request_hook = request_shared_state;
  previous_startup_hook = shmem_startup_hook;
  shmem_startup_hook = start_shared_state;
}

Slot* find_slot() {
  LWLockAcquire(state->lock, LW_SHARED);
  Slot* const slot = slot_of(MyDatabaseId);
  LWLockRelease(state->lock);
  return slot;
}

Slot* find_or_try_slot() {
  if (Slot* slot = find_slot()) return slot;
  if (Slot* slot = take_slot()) return slot;
  free_slots_of_dropped_databases();
  return take_slot();
}

Slot* find_or_take_slot() {
  Slot* const slot = find_or_try_slot();
  if (slot == nullptr) error_too_many_databases();
  return slot;
}

MarkIdentity mark_of(const Slot& slot) {
  LWLockAcquire(state->lock, LW_SHARED);
  const MarkIdentity mark{slot.mark, slot.mark_storage};
  LWLockRelease(state->lock);
  return mark;
}

}  // namespace snowflake::pg
