#include "core/clock_base.hpp"
#include "core/seal.hpp"
#include "pg/memory/database_state.hpp"

#include <new>

#include "pg/server/settings.hpp"
#include "pg/memory/lease_state.hpp"
#include "pg/memory/postmaster_memory.hpp"
#include "pg/server/origin_settings.hpp"
#include "pg/server/session_start.hpp"

namespace snowflake::pg {

namespace {

struct KnownState {
  dsm_handle memory;
  DatabaseState* state;
};
constinit KnownState own{};

// REQUIRES shared_state->lock in any mode.
DatabaseEntry* entry_of(Oid database) {
  DatabaseEntry* const first = shared_state->databases;
  DatabaseEntry* const last = first + shared_state->database_count;
  DatabaseEntry* const found = std::find_if(
      first, last, [=](const DatabaseEntry& entry) { return entry.database == database; });
  return found == last ? nullptr : found;
}

uint64_t number_of(MarkIdentity mark) {
  return uint64_t{mark.relation} << 32 | mark.storage;
}

// REQUIRES shared_state->lock in exclusive mode.
void end_generation(DatabaseState& state) {
  state.limits.withdraw();
  state.reset_checks();
}

bool database_exists(Oid database) {
  return SearchSysCacheExists1(DATABASEOID, ObjectIdGetDatum(database));
}

struct DatabaseList {
  uint32_t version;
  std::span<DatabaseEntry> entries;
};

DatabaseList databases_now() {
  const auto entries =
      static_cast<DatabaseEntry*>(palloc(sizeof(DatabaseEntry) * size_t{kMostDatabases}));
  LWLockAcquire(&shared_state->lock, LW_SHARED);
  const auto count = static_cast<size_t>(shared_state->database_count);
  std::copy_n(shared_state->databases, count, entries);
  const uint32_t version = shared_state->databases_version;
  LWLockRelease(&shared_state->lock);
  return {version, {entries, count}};
}

DatabaseState* state_in(dsm_segment* segment) {
  return static_cast<DatabaseState*>(dsm_segment_address(segment));
}

// The member `segment` is null if another session has already freed the shared memory segment of
// the database.
struct Mapping {
  dsm_segment* segment;
  bool is_new;
};

Mapping map_state(dsm_handle memory) {
  if (dsm_segment* const segment = dsm_find_mapping(memory)) return {segment, false};
  return {dsm_attach(memory), true};
}

void unmap(const Mapping& mapping) {
  if (mapping.is_new && mapping.segment != nullptr) dsm_detach(mapping.segment);
}

void free_state(const DatabaseEntry& gone) {
  LWLockAcquire(&shared_state->lock, LW_EXCLUSIVE);
  DatabaseEntry* const entry = entry_of(gone.database);
  const bool found = entry != nullptr && entry->memory == gone.memory;
  if (found) {
    *entry = shared_state->databases[--shared_state->database_count];
    ++shared_state->databases_version;
  }
  LWLockRelease(&shared_state->lock);
  if (found) dsm_unpin_segment(gone.memory);
}

// No backend uses the shared state of a dropped database, because a database with sessions cannot
// be dropped. A database that was dropped before a crash restart has no shared state any more, but
// it still has an entry in postmaster_memory->regions.
void release_dropped_databases() {
  const DatabaseList list = databases_now();
  for (const DatabaseEntry& entry : list.entries)
    if (!database_exists(entry.database)) free_state(entry);
  pfree(list.entries.data());
  auto& regions = postmaster_memory->regions;
  for (size_t i = 0; i < regions.kEntries; ++i) {
    const Oid database = regions.database_at(i);
    if (!OidIsValid(database) || database_exists(database)) continue;
    LWLockAcquire(&shared_state->lock, LW_EXCLUSIVE);
    regions.leave(database);
    LWLockRelease(&shared_state->lock);
  }
}

// If an error occurs before other sessions can find the segment, PostgreSQL frees the segment.
dsm_segment* make_state() {
  const size_t counters = std::min(layout.shards(), kMaxShardCounters);
  const Size slots = mul_size(static_cast<Size>(MaxBackends), sizeof(MintSlot));
  const Size size =
      add_size(add_size(sizeof(DatabaseState), slots), mul_size(counters, sizeof(Shard)));
  dsm_segment* const segment = dsm_create(size, 0);
  const auto state = new (dsm_segment_address(segment)) DatabaseState{};
  state->database = MyDatabaseId;
  state->seal = seal_of(layout);
  for (MintSlot& slot : state->mint_slots()) new (&slot) MintSlot{};
  for (Shard& counter : state->shard_counters()) new (&counter) Shard{};
  return segment;
}

// Ends the use of a database's former shared state, which has shard counters for another layout of
// ids. The shard counters in the new shared state are zero, and must be raised to the high-water
// mark. The high-water marks of dropped extensions are recorded outside the shared state of a
// database. REQUIRES shared_state->lock in exclusive mode.
void end_former_state(DatabaseState& former) {
  postmaster_memory->lost_marks.raise(MyDatabaseId, former.limits.highest_ms());
  end_generation(former);
}

bool would_change_origin(const DatabaseState& state) {
  const SessionStart start = session_start();  // reads a file
  const OriginSettings wanted = origin_settings();
  LWLockAcquire(&shared_state->lock, LW_SHARED);
  const bool would = state.origin.would_change(start, wanted.region, wanted.shards);
  LWLockRelease(&shared_state->lock);
  return would;
}

enum class Published { yes, try_again, no_room };

// Publishes the shared state in `segment`, which replaces the shared state `former`. The member
// former.state is null if the database has no shared state yet.
Published publish_state(dsm_segment* segment, const KnownState& former) {
  DatabaseState& made = *state_in(segment);
  Published result{};
  LWLockAcquire(&shared_state->lock, LW_EXCLUSIVE);
  DatabaseEntry* entry = entry_of(MyDatabaseId);
  const bool has_room = entry != nullptr || shared_state->database_count < most_databases();
  if ((entry == nullptr ? 0 : entry->memory) != former.memory) {
    result = Published::try_again;
  } else if (!has_room) {
    result = Published::no_room;
  } else {
    dsm_pin_segment(segment);
    if (former.state != nullptr) {
      made.origin = former.state->origin;
      end_former_state(*former.state);
    }
    if (entry == nullptr) entry = &shared_state->databases[shared_state->database_count++];
    *entry = {MyDatabaseId, dsm_segment_handle(segment)};
    ++shared_state->databases_version;
    result = Published::yes;
  }
  LWLockRelease(&shared_state->lock);
  return result;
}

// Returns null if the server has no room for the state of another database.
DatabaseState* create_database_state() {
  dsm_segment* const segment = make_state();
  for (;;) {
    DatabaseState* const present = find_database_state();
    const KnownState former = present == nullptr ? KnownState{} : own;
    const bool other_layout = present == nullptr || !is_of_session_layout(*present);
    const Published published = other_layout ? publish_state(segment, former) : Published::no_room;
    if (published == Published::try_again) continue;
    if (published == Published::yes) {
      dsm_pin_mapping(segment);
      if (former.state != nullptr) dsm_unpin_segment(former.memory);
      return find_database_state();
    }
    dsm_detach(segment);
    return present;
  }
}

}  // namespace

std::span<MintSlot> DatabaseState::mint_slots() const {
  return {reinterpret_cast<MintSlot*>(const_cast<DatabaseState*>(this) + 1),
          static_cast<size_t>(MaxBackends)};
}

std::span<Shard> DatabaseState::shard_counters() const {
  const std::span<MintSlot> slots = mint_slots();
  return {reinterpret_cast<Shard*>(slots.data() + slots.size()),
          std::min(layout_of(seal).shards(), kMaxShardCounters)};
}

DatabaseState* find_database_state() {
  for (;;) {
    LWLockAcquire(&shared_state->lock, LW_SHARED);
    const DatabaseEntry* const entry = entry_of(MyDatabaseId);
    const dsm_handle memory = entry == nullptr ? 0 : entry->memory;
    LWLockRelease(&shared_state->lock);
    if (memory == 0) return nullptr;
    if (memory == own.memory) return own.state;
    const Mapping mapping = map_state(memory);
    if (mapping.segment == nullptr) continue;  // another session has replaced the DSM segment
    if (mapping.is_new) dsm_pin_mapping(mapping.segment);
    own = {memory, state_in(mapping.segment)};
    return own.state;
  }
}

DatabaseState* find_or_take_database_state() {
  DatabaseState* const state = find_database_state();
  const bool is_usable = state != nullptr && is_of_session_layout(*state);
  if (is_usable && !would_change_origin(*state)) return state;
  release_dropped_databases();  // may make a region free
  return is_usable ? state : create_database_state();
}

bool is_of_session_layout(const DatabaseState& state) {
  return state.seal == seal_of(layout);
}

void for_each_database(void (*visit)(const DatabaseState& state, void* argument), void* argument) {
  const DatabaseList list = databases_now();
  const auto mappings = static_cast<Mapping*>(palloc(sizeof(Mapping) * size_t{kMostDatabases}));
  std::ranges::transform(list.entries, mappings,
                         [](const DatabaseEntry& entry) { return map_state(entry.memory); });
  const std::span<Mapping> all_mappings{mappings, list.entries.size()};
  for (const Mapping& mapping : all_mappings) {
    CHECK_FOR_INTERRUPTS();
    if (mapping.segment != nullptr) visit(*state_in(mapping.segment), argument);
  }
  for (const Mapping& mapping : all_mappings) unmap(mapping);
  pfree(mappings);
  pfree(list.entries.data());
}

bool has_or_may_take_state() {
  const DatabaseList list = databases_now();
  const bool may = list.entries.size() < static_cast<size_t>(most_databases()) ||
                   std::ranges::any_of(list.entries, [](const DatabaseEntry& entry) {
                     return entry.database == MyDatabaseId || !database_exists(entry.database);
                   });
  pfree(list.entries.data());
  return may;
}

void raise_floor(const DatabaseState& state, uint64_t position) {
  for (Shard& counter : state.shard_counters()) counter.raise_floor(position);
}

MarkIdentity mark_of(const DatabaseState& state) {
  LWLockAcquire(&shared_state->lock, LW_SHARED);
  const uint64_t number = state.limits.mark();
  LWLockRelease(&shared_state->lock);
  return {static_cast<Oid>(number >> 32), static_cast<Oid>(number)};
}

namespace {

constinit ShardRange owned_ranges[kMaxShardRanges]{};

// REQUIRES shared_state->lock in exclusive mode.
void record_region_mark(const DatabaseState& state, int64_t mark_ms) {
  if (!leased())
    postmaster_memory->regions.record(MyDatabaseId, state.origin.region(),
                                      state.origin.hash_of_shards(), mark_ms);
}

// Sets the region and shards of the database to the settings of this session, unless a session that
// started later has already set them. Returns the region, and the earliest time for ids of the
// region, because another database may have used the region before. Other sessions may still mint
// ids of the former region and shards, but only below the old limit of ids. REQUIRES
// shared_state->lock in exclusive mode.
RegionHold choose_origin(DatabaseState& state, SessionStart start) {
  const OriginSettings wanted = origin_settings();
  if (state.origin.offer(start, wanted.region, wanted.shards)) state.limits.end_region();
  if (leased()) return leased_region_under_lock();
  // left_ms() returns the greatest high-water mark of the databases that have left the region. The
  // function left_ms() is called first, because record_region_mark() can add the high-water mark of
  // this database to the marks of databases that have left.
  const int32_t region = state.origin.region();
  const RegionHold held{region, postmaster_memory->regions.left_ms(region)};
  record_region_mark(state, state.limits.highest_ms());
  return held;
}

// REQUIRES shared_state->lock.
void copy_owned_shards(const MintOrigin& origin) {
  const ShardSet shards = origin.shards();
  std::copy_n(shards.ranges, shards.count, owned_ranges);
  owned_shards = {owned_ranges, shards.count};
}

}  // namespace

constinit ShardSet owned_shards{};

std::optional<OriginInUse> chosen_origin(const DatabaseState& state, SessionStart than) {
  const auto ranges = static_cast<ShardRange*>(palloc(sizeof(ShardRange) * kMaxShardRanges));
  LWLockAcquire(&shared_state->lock, LW_SHARED);
  const bool chosen = state.origin.is_chosen() && !state.origin.yields_to(than);
  const int32_t region = state.origin.region();
  const ShardSet shards = state.origin.shards();
  std::copy_n(shards.ranges, shards.count, ranges);
  LWLockRelease(&shared_state->lock);
  if (!chosen) return std::nullopt;
  return OriginInUse{region, {ranges, shards.count}, nullptr};
}

OriginInUse origin_in_use() {
  if (const DatabaseState* const state = find_database_state())
    if (const auto chosen = chosen_origin(*state, session_start())) return *chosen;
  const OriginSettings wanted = origin_settings();
  return {wanted.region, wanted.shards, wanted.invalid};
}

MarkBinding bind_mark(DatabaseState& state, MarkIdentity mark, int64_t stored_ms) {
  const SessionStart start = session_start();  // reads a file
  LWLockAcquire(&shared_state->lock, LW_EXCLUSIVE);
  const uint32_t before = state.limits.generation();
  const RegionHold held = choose_origin(state, start);
  const MarkBinding binding = state.limits.bind(number_of(mark), stored_ms, held);
  copy_owned_shards(state.origin);
  if (binding.generation != before) state.reset_checks();
  LWLockRelease(&shared_state->lock);
  return binding;
}

bool publish_limit(DatabaseState& state, uint32_t generation, int64_t mark_ms) {
  LWLockAcquire(&shared_state->lock, LW_EXCLUSIVE);
  if (state.limits.is_current(generation)) record_region_mark(state, mark_ms);
  const bool current = state.limits.publish(layout, generation, mark_ms, limiting_lease());
  LWLockRelease(&shared_state->lock);
  return current;
}

void withdraw_limit(DatabaseState& state) {
  LWLockAcquire(&shared_state->lock, LW_EXCLUSIVE);
  end_generation(state);
  LWLockRelease(&shared_state->lock);
}

namespace {

// Between lock_all_databases() and unlock_all_databases(), the array `all` contains the mapped
// shared state of every database.
constinit Mapping all[kMostDatabases]{};
constinit size_t all_count = 0;

void unmap_all() {
  while (all_count > 0) unmap(all[--all_count]);
}

}  // namespace

void lock_all_databases() {
  all_count = 0;  // PostgreSQL unmaps the segments after an error
  for (;;) {
    const DatabaseList list = databases_now();
    for (const DatabaseEntry& entry : list.entries)
      if (const Mapping mapping = map_state(entry.memory); mapping.segment != nullptr)
        all[all_count++] = mapping;
    pfree(list.entries.data());
    LWLockAcquire(&shared_state->lock, LW_EXCLUSIVE);
    if (shared_state->databases_version == list.version) return;
    LWLockRelease(&shared_state->lock);
    unmap_all();
  }
}

void end_region_under_lock() {
  for (size_t i = 0; i < all_count; ++i) {
    DatabaseState& state = *state_in(all[i].segment);
    state.limits.end_region();
    state.reset_checks();
  }
}

void unlock_all_databases() {
  LWLockRelease(&shared_state->lock);
  unmap_all();
}

}  // namespace snowflake::pg
