// explain_id() accepts any number, even ids of other layouts, servers and products.

#include "core/clock.hpp"
#include "core/seal.hpp"
#include "pg/checks/database_health.hpp"
#include "pg/checks/state_sequences.hpp"
#include "pg/server/row.hpp"
#include "pg/memory/lease_state.hpp"
#include "pg/server/settings.hpp"
#include "pg/memory/shared_state.hpp"
#include "pg/server/text.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

// If a restored dump has another layout, explain_id() uses the layout from before the restore.
Layout layout_of_ids(const DatabaseHealth& health) {
  const Layout sealed = layout_of(health.sealed);
  return health.sealed != 0 && check(sealed) == LayoutError::none ? sealed : layout;
}

class Contradictions {
 public:
  void add(const char* what) { text_ = text_ == nullptr ? what : psprintf("%s; %s", text_, what); }
  const char* text() const { return text_; }

 private:
  const char* text_ = nullptr;
};

void contradict_time(const DatabaseHealth& health, const Layout& ids, uint64_t id,
                     Contradictions& all) {
  const int64_t ms = ids.ms_of_tick(ids.tick_of(id));
  if (ms > health.clock_ms + max_lead_ms)
    all.add(psprintf("the id is %s ahead of the clock, but \"snowflake.max_lead\" is %d ms",
                     span_text(ms - health.clock_ms), max_lead_ms));
  if (health.mark_ms >= ids.epoch_ms && ms >= health.mark_ms) {
    all.add(
        psprintf("the id has a later time than all ids of this database: the high-water "
                 "mark is %s",
                 time_text(health.mark_ms)));
    return;
  }
  if (health.state == nullptr || ids != layout) return;
  const std::span<Shard> counters = health.state->shard_counters();
  if (counters.size() != std::min(ids.shards(), kMaxShardCounters)) return;
  const uint64_t last = shard_counter(counters.data(), ids.shard_of(id)).last();
  if (last != 0 && ids.position_of(id) > last)
    all.add(psprintf("shard %u has not minted this id yet: its last id has the time %s",
                     ids.shard_of(id), time_text(ids.ms_of_tick(ids.tick_of_position(last)))));
}

// In a leased region, ids from before the lease were minted by another server or an earlier server
// run.
bool is_own(const OriginInUse& origin, const Layout& ids, uint64_t id) {
  const auto region = static_cast<int32_t>(ids.region_of(id));
  if (!leased()) return region == origin.region;
  const LeaseView lease = lease_view();
  const int64_t ms = ids.ms_of_tick(ids.tick_of(id));
  return region == lease.region && ms >= lease.floor_ms && ms < lease.until_ms;
}

const char* server_of(const OriginInUse& origin, const Layout& ids, uint64_t id, bool ours) {
  if (ours) return "this server";
  const uint32_t region = ids.region_of(id);
  if (leased() && leased_regions.contains(region))
    return psprintf("this server or its clone: one of them has leased region %u", region);
  if (leased()) return psprintf("the server that has region %u", region);
  if (region != static_cast<uint32_t>(origin.region))
    return psprintf("the server that has region %u", region);
  return psprintf("another server (the owner of shard %u)", ids.shard_of(id));
}

// Collects the reasons why an id cannot be valid. Returns a description of the PostgreSQL server to
// which the region and shard of the id belong.
const char* judge_minted(const DatabaseHealth& health, const Layout& ids, uint64_t id,
                         Contradictions& all) {
  const uint32_t shard = ids.shard_of(id);
  const OriginInUse origin = origin_in_use();
  const bool own = is_own(origin, ids, id);
  if (!own && !leased())
    all.add(psprintf("the id has region %u, but this server mints in region %d", ids.region_of(id),
                     origin.region));
  if (leased() && !leased_regions.contains(ids.region_of(id)))
    all.add(psprintf("the id has region %u, which is not in \"snowflake.leased_regions\"",
                     ids.region_of(id)));
  const bool owned = origin.shards.contains(shard);
  if (!owned)
    all.add(psprintf("the id has shard %u, but \"snowflake.owned_shards\" is %s", shard,
                     shards_text(origin.shards)));
  contradict_time(health, ids, id, all);
  return server_of(origin, ids, id, own && owned);
}

// Describes a region and shard that backfill() or late_id() has reserved for old rows.
struct ReservedOrigin {
  bool known;  // false if snowflake.backfills is locked
  bool found;
  const char* relation;   // null: the origin of late_id()
  int64_t last_position;  // -1: no id yet
  TimestampTz until;      // the end of the reservation
};

void read_origin(HeapTuple row, TupleDesc columns, const Layout& ids, uint64_t id,
                 ReservedOrigin& origin) {
  bool null[5];
  const Datum region = heap_getattr(row, 1, columns, &null[0]);
  const Datum shard = heap_getattr(row, 2, columns, &null[1]);
  const Datum relation = heap_getattr(row, 3, columns, &null[2]);
  const Datum last_position = heap_getattr(row, 6, columns, &null[3]);
  const Datum until = heap_getattr(row, 7, columns, &null[4]);
  if (null[0] || null[1] || static_cast<uint32_t>(DatumGetInt32(region)) != ids.region_of(id) ||
      static_cast<uint32_t>(DatumGetInt32(shard)) != ids.shard_of(id))
    return;
  origin = {true, true, null[2] ? nullptr : TextDatumGetCString(relation),
            null[3] ? -1 : DatumGetInt64(last_position), null[4] ? 0 : DatumGetTimestampTz(until)};
}

ReservedOrigin find_reserved_origin(const Layout& ids, uint64_t id) {
  ReservedOrigin origin{true, false, nullptr, -1, 0};
  const StateSequences sequences = present_state_sequences();
  const Oid table = sequences.backfills;
  if (!OidIsValid(table) || sequences.blocker() == Blocker::other_extension) return origin;
  if (!ConditionalLockRelationOid(table, AccessShareLock)) return {false, false, nullptr, -1, 0};
  if (Relation relation = try_relation_open(table, NoLock)) {
    SysScanDesc scan = systable_beginscan(relation, InvalidOid, false, nullptr, 0, nullptr);
    while (HeapTuple row = systable_getnext(scan))
      read_origin(row, RelationGetDescr(relation), ids, id, origin);
    systable_endscan(scan);
    relation_close(relation, NoLock);
  }
  UnlockRelationOid(table, AccessShareLock);
  return origin;
}

const char* judge(const DatabaseHealth& health, const Layout& ids, uint64_t id,
                  Contradictions& all) {
  const ReservedOrigin origin = find_reserved_origin(ids, id);
  if (!origin.known)
    all.add(
        "table snowflake.backfills is locked, so backfill() may have reserved the id's region and "
        "shard");
  const char* by;
  if (!origin.found || timestamp_of_ms(ids.ms_of_tick(ids.tick_of(id))) >= origin.until) {
    by = judge_minted(health, ids, id, all);
  } else if (origin.relation == nullptr) {
    by = "late_id()";
  } else {
    by = psprintf("backfill() for %s", origin.relation);
    if (static_cast<int64_t>(ids.position_of(id)) > origin.last_position)
      all.add("backfill() has not given a row an id of this time, region and shard");
  }
  if (!ids.is_of_first_hour(id)) return by;
  return psprintf("%s, or any sequence: this number is small", by);
}

}  // namespace

SF_SQL_FUNCTION(explain_id) {
  require_shared_state();
  const auto id = static_cast<uint64_t>(PG_GETARG_INT64(0));
  const DatabaseHealth health = database_health();
  const Layout ids = layout_of_ids(health);
  Contradictions all;
  const bool known = ids.contains(id);
  const uint32_t region = known ? ids.region_of(id) : 0;
  const uint32_t shard = known ? ids.shard_of(id) : 0;
  const char* by = "no server, because the layout has no such id";
  if (known) {
    by = judge(health, ids, id, all);
  } else {
    all.add(static_cast<int64_t>(id) < 0
                ? "the number is negative, and ids are never negative"
                : psprintf("the number is greater than %llu, the last id of layout %s",
                           static_cast<unsigned long long>(ids.last_id()), layout_bits_text(ids)));
  }
  const int64_t ms = known ? ids.ms_of_tick(ids.tick_of(id)) : health.clock_ms;
  const Datum age =
      DirectFunctionCall2(timestamp_mi, timestamp_datum(health.clock_ms), timestamp_datum(ms));
  return row_of(
      fcinfo,
      {
          {"id", Int64GetDatum(static_cast<int64_t>(id))},
          {"created_at", timestamp_datum(ms), !known},
          {"age", age, !known},
          {"region", Int32GetDatum(static_cast<int32>(region)), !known},
          {"shard", Int32GetDatum(static_cast<int32>(shard)), !known},
          {"sequence", Int32GetDatum(known ? static_cast<int32>(ids.sequence_of(id)) : 0), !known},
          {"minted_by", by},
          {"possible", BoolGetDatum(all.text() == nullptr)},
          {"contradiction", all.text()},
      });
}

}  // namespace snowflake::pg
