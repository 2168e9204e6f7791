#include "pg/mark/reserved_places.hpp"

#include "pg/memory/mark_hold.hpp"
#include "pg/errors/errors.hpp"
#include "pg/server/session_events.hpp"
#include "pg/server/settings.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

struct Places {
  ShardRange* of;  // region and shard, as first and last
  size_t count;
  size_t room;
};
constinit Places places{};
constinit ShardRange* ranges = nullptr;  // those of mintable_shards, where it is no other's
constinit Oid table = InvalidOid;

bool may_be_ours(int32_t region) {
  return leased() || region == own_region;
}

void keep(uint32_t region, uint32_t shard) {
  if (places.count == places.room) {
    const size_t room = std::max<size_t>(16, 2 * places.room);
    const Size bytes = room * sizeof(ShardRange);
    places.of =
        static_cast<ShardRange*>(places.of == nullptr ? MemoryContextAlloc(TopMemoryContext, bytes)
                                                      : repalloc(places.of, bytes));
    places.room = room;
  }
  places.of[places.count++] = {region, shard};
}

// Of a table that is locked. Where it is gone there are none.
template <class See>
void for_each_row(Oid locked, See see) {
  Relation relation = try_relation_open(locked, NoLock);
  if (relation == nullptr) return;
  SysScanDesc scan = systable_beginscan(relation, InvalidOid, false, nullptr, 0, nullptr);
  while (HeapTuple row = systable_getnext(scan)) see(row, RelationGetDescr(relation));
  systable_endscan(scan);
  relation_close(relation, NoLock);
}

// -1 for a null.
template <class Number>
Number number_in(HeapTuple row, TupleDesc columns, int column) {
  bool null = false;
  const Datum value = heap_getattr(row, column, columns, &null);
  return null ? Number{-1} : static_cast<Number>(value);
}

}  // namespace

void forget_reserved_places() {
  places.count = 0;
}

void read_reserved_places(const StateSequences& sequences) {
  forget_reserved_places();
  table = sequences.backfills;
  if (!OidIsValid(table)) return;
  LockRelationOid(table, AccessShareLock);
  for_each_row(table, [](HeapTuple row, TupleDesc columns) {
    const int32_t region = number_in<int32_t>(row, columns, 1);
    const int32_t shard = number_in<int32_t>(row, columns, 2);
    if (region >= 0 && shard >= 0 && may_be_ours(region))
      keep(static_cast<uint32_t>(region), static_cast<uint32_t>(shard));
  });
  UnlockRelationOid(table, AccessShareLock);
}

ReservedPlace find_reserved_place(uint32_t region, uint32_t shard) {
  ReservedPlace found{true, nullptr, -1};
  const StateSequences sequences = present_state_sequences();
  const Oid backfills = sequences.backfills;
  if (!OidIsValid(backfills) || sequences.obstacle() == Obstacle::other_extension) return found;
  if (!ConditionalLockRelationOid(backfills, AccessShareLock)) return {false, nullptr, -1};
  for_each_row(backfills, [&](HeapTuple row, TupleDesc columns) {
    if (number_in<int32_t>(row, columns, 1) != static_cast<int32_t>(region) ||
        number_in<int32_t>(row, columns, 2) != static_cast<int32_t>(shard))
      return;
    bool null = false;
    const Datum relation = heap_getattr(row, 3, columns, &null);
    found.relation = null ? "" : TextDatumGetCString(relation);
    found.last_position = number_in<int64_t>(row, columns, 6);
  });
  UnlockRelationOid(backfills, AccessShareLock);
  return found;
}

bool may_have_reserved_places(const DatabaseState& state) {
  return state.has_places.load(std::memory_order_relaxed);
}

// Never taken back: that nobody has reserved any is true of what is committed, and another may be
// about to be.
void note_reserved_places(DatabaseState& state) {
  state.places.store(table, std::memory_order_relaxed);
  if (places.count != 0) state.has_places.store(true, std::memory_order_relaxed);
}

void leave_out_reserved(uint32_t region) {
  ShardSet left = owned_shards;
  ShardRange* made = nullptr;
  for (size_t i = 0; i < places.count; ++i) {
    const auto [of_region, shard] = places.of[i];
    if (of_region != region || !left.contains(shard)) continue;
    ShardRange* const next = static_cast<ShardRange*>(
        MemoryContextAlloc(TopMemoryContext, (left.count + 1) * sizeof(ShardRange)));
    left = without(left, shard, next);
    if (made != nullptr) pfree(made);
    made = next;
  }
  mintable_shards = left;
  if (ranges != nullptr) pfree(ranges);
  ranges = made;
}

bool is_table_of_places(Oid relation) {
  if (OidIsValid(table)) return relation == table;
  // Attached by what others had checked.
  return hold.state != nullptr && relation == hold.state->places.load(std::memory_order_relaxed);
}

// The table's trigger: each session looks again, those that are open at the commit.
SF_SQL_FUNCTION(place_reserved) {
  if (!CALLED_AS_TRIGGER(fcinfo)) error_not_the_places_trigger();
  CacheInvalidateRelcache(reinterpret_cast<TriggerData*>(fcinfo->context)->tg_relation);
  DatabaseState* const state = shared_state == nullptr ? nullptr : find_or_take_database_state();
  if (state != nullptr) state->has_places.store(true, std::memory_order_relaxed);
  return PointerGetDatum(nullptr);
}

}  // namespace snowflake::pg
