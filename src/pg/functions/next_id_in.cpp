// next_id_in() mints an id of any shard of a range. A session stays in one shard, so that rows of
// the session are close together. If the next id of the session's shard would be later than the
// clock, the session uses the next shard instead of waiting. The function next_ids_in() mints a
// batch in equal parts from all owned shards of a range.

#include <algorithm>
#include <cstring>

#include "core/clock.hpp"
#include "pg/mark/attach.hpp"
#include "pg/memory/mark_hold.hpp"
#include "pg/errors/errors.hpp"
#include "pg/errors/errors_routing.hpp"
#include "pg/server/postgres.hpp"
#include "pg/server/settings.hpp"

extern "C" Datum snowflake_next_id(PG_FUNCTION_ARGS);
extern "C" Datum snowflake_next_ids(PG_FUNCTION_ARGS);

namespace snowflake::pg {

namespace {

struct Range {
  uint32_t first;
  uint32_t end;

  bool contains(uint32_t shard) const { return shard >= first && shard < end; }
  uint32_t next(uint32_t shard) const { return shard + 1 < end ? shard + 1 : first; }
};

// next_id_in() searches at most kLooks shards for a shard that is not ahead of the clock. If all
// searched shards are ahead of the clock, next_id_in() uses the shard that is least ahead.
constexpr int kLooks = 64;

constinit uint32_t last_used = UINT32_MAX;  // the shard of the session's last call

Range range_of(FunctionCallInfo fcinfo) {
  RangeType* const shards = PG_GETARG_RANGE_P(0);
  RangeBound lower;
  RangeBound upper;
  bool empty = false;
  range_deserialize(range_get_typcache(fcinfo, RangeTypeGetOid(shards)), shards, &lower, &upper,
                    &empty);
  // PostgreSQL stores an int4range with an inclusive lower bound and an exclusive upper bound.
  const int64_t first = DatumGetInt32(lower.val);
  const int64_t end = DatumGetInt32(upper.val);
  if (empty || lower.infinite || upper.infinite || first < 0 || end > int64_t{layout.shards()})
    error_shards_range(OidOutputFunctionCall(F_RANGE_OUT, PG_GETARG_DATUM(0)));
  return {static_cast<uint32_t>(first), static_cast<uint32_t>(end)};
}

uint64_t ahead(uint32_t shard, uint64_t now) {
  const uint64_t next = layout.tick_of_position(shard_counter(hold.counters, shard).last() + 1);
  return next > now ? next - now : 0;
}

// Returns the first shard to try. A hash of the process id spreads the processes over the shards of
// the range.
uint32_t start_of(const Range& range) {
  const uint64_t spread = (static_cast<uint64_t>(MyProcPid) * 0x9e3779b97f4a7c15) >> 32;
  return range.first + static_cast<uint32_t>(spread * (range.end - range.first) >> 32);
}

uint32_t choose(const Range& range) {
  const uint32_t start = range.contains(last_used) ? last_used : start_of(range);
  const int64_t clock_ms = wall_clock_ms();
  // next_id() calls attach() if necessary, and raises the error if the clock is before the epoch.
  const bool after_epoch = hold.good() && clock_ms >= layout.epoch_ms;
  const uint64_t now = after_epoch ? layout.tick_at(clock_ms) : 0;
  uint32_t best = UINT32_MAX;
  uint64_t least = UINT64_MAX;
  int looks = 0;
  uint32_t shard = start;
  do {
    if (owned_shards.contains(shard)) {
      const uint64_t lead = after_epoch ? ahead(shard, now) : 0;
      if (lead < least) {
        least = lead;
        best = shard;
      }
      if (lead == 0 || ++looks == kLooks) break;
    }
    shard = range.next(shard);
  } while (shard != start);
  // If this server owns no shard of the range, next_id() raises an error that names the first shard
  // of the range.
  return best == UINT32_MAX ? range.first : best;
}

Range checked_range(FunctionCallInfo fcinfo, const char* function) {
  require_shared_state();
  if (PG_ARGISNULL(0)) error_shard_null();
  if (XactReadOnly) error_read_only(function);
  if (IsInParallelMode()) error_parallel(function);
  WaitBudget budget;
  while (!hold.good()) attach(budget);
  return range_of(fcinfo);
}

Datum batch_of(uint32_t shard, int count) {
  return DirectFunctionCall2(snowflake_next_ids, Int32GetDatum(static_cast<int32>(shard)),
                             Int32GetDatum(count));
}

uint32_t count_owned(const Range& range) {
  uint32_t owned = 0;
  for (uint32_t shard = range.first; shard < range.end; ++shard)
    owned += owned_shards.contains(shard) ? 1 : 0;
  return owned;
}

// Mints one batch of ids in each shard that this server owns within the range, and writes the ids
// to `out`. A small batch of next_ids_in() begins after the last used shard, so that all shards of
// the range get ids.
void fill_parts(const Range& range, uint32_t owned, uint32_t count, Datum* out) {
  static_assert(sizeof(Datum) == sizeof(int64_t));
  uint32_t shard = range.contains(last_used) ? range.next(last_used) : start_of(range);
  const uint32_t longer = count % owned;
  uint32_t passed = 0;  // consecutive shards that the database does not own
  for (uint32_t part = 0; part < std::min(owned, count); shard = range.next(shard)) {
    // next_ids() raises the error if the database does not own any shard of the range any more.
    if (!owned_shards.contains(shard) && passed++ < range.end - range.first) continue;
    passed = 0;
    const uint32_t size = count / owned + (part < longer ? 1 : 0);
    ArrayType* const ids = DatumGetArrayTypeP(batch_of(shard, static_cast<int>(size)));
    std::memcpy(out, ARR_DATA_PTR(ids), size * sizeof(Datum));
    pfree(ids);
    out += size;
    last_used = shard;
    ++part;
  }
}

}  // namespace

SF_SQL_FUNCTION(next_id_in) {
  const Range range = checked_range(fcinfo, "next_id_in()");
  last_used = choose(range);
  return DirectFunctionCall1(snowflake_next_id, Int32GetDatum(static_cast<int32>(last_used)));
}

SF_SQL_FUNCTION(next_ids_in) {
  const Range range = checked_range(fcinfo, "next_ids_in()");
  if (PG_ARGISNULL(1)) error_count_null();
  const int count = PG_GETARG_INT32(1);
  if (count < 1 || count > kMaxBatch) error_count(count);
  const uint32_t owned = count_owned(range);
  // If this server owns no shard of the range, next_id() raises an error that names the first shard
  // of the range.
  if (owned == 0) return batch_of(range.first, count);
  const auto ids = static_cast<Datum*>(palloc(sizeof(Datum) * static_cast<Size>(count)));
  fill_parts(range, owned, static_cast<uint32_t>(count), ids);
  PG_RETURN_ARRAYTYPE_P(
      construct_array(ids, count, INT8OID, sizeof(int64_t), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

}  // namespace snowflake::pg
