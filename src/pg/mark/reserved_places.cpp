#include "pg/mark/reserved_places.hpp"

#include "pg/memory/mark_hold.hpp"
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

}  // namespace

void forget_reserved_places() {
  places.count = 0;
}

void read_reserved_places(const StateSequences& sequences) {
  forget_reserved_places();
  table = sequences.backfills;
  if (!OidIsValid(table)) return;
  LockRelationOid(table, AccessShareLock);
  Relation relation = try_relation_open(table, NoLock);
  if (relation != nullptr) {
    SysScanDesc scan = systable_beginscan(relation, InvalidOid, false, nullptr, 0, nullptr);
    while (HeapTuple row = systable_getnext(scan)) {
      bool nulls[2] = {};
      const int32_t region =
          DatumGetInt32(heap_getattr(row, 1, RelationGetDescr(relation), &nulls[0]));
      const int32_t shard =
          DatumGetInt32(heap_getattr(row, 2, RelationGetDescr(relation), &nulls[1]));
      if (!nulls[0] && !nulls[1] && region >= 0 && shard >= 0 && may_be_ours(region))
        keep(static_cast<uint32_t>(region), static_cast<uint32_t>(shard));
    }
    systable_endscan(scan);
    relation_close(relation, NoLock);
  }
  UnlockRelationOid(table, AccessShareLock);
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
  if (!CALLED_AS_TRIGGER(fcinfo)) elog(ERROR, "place_reserved() was not called as a trigger");
  CacheInvalidateRelcache(reinterpret_cast<TriggerData*>(fcinfo->context)->tg_relation);
  DatabaseState* const state = shared_state == nullptr ? nullptr : find_or_take_database_state();
  if (state != nullptr) state->has_places.store(true, std::memory_order_relaxed);
  return PointerGetDatum(nullptr);
}

}  // namespace snowflake::pg
