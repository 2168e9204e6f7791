// next_id_in(): an id of any shard of a range. A session stays with a shard for as long as that is
// not ahead of the clock, so its rows lie together; a burst goes over to the next one instead of
// waiting.

#include "core/clock.hpp"
#include "pg/clock/wait.hpp"
#include "pg/mark/high_water.hpp"
#include "pg/memory/mark_hold.hpp"
#include "pg/errors/errors.hpp"
#include "pg/errors/errors_routing.hpp"
#include "pg/server/postgres.hpp"
#include "pg/server/settings.hpp"

extern "C" Datum snowflake_next_id(PG_FUNCTION_ARGS);

namespace snowflake::pg {

namespace {

struct Range {
  uint32_t first;
  uint32_t end;

  bool contains(uint32_t shard) const { return shard >= first && shard < end; }
  uint32_t next(uint32_t shard) const { return shard + 1 < end ? shard + 1 : first; }
};

// Of how many shards that are ahead of the clock the one that is least so is taken.
constexpr int kLooks = 64;

constinit uint32_t last_used = UINT32_MAX;  // by this session's last call

Range range_of(FunctionCallInfo fcinfo) {
  RangeType* const shards = PG_GETARG_RANGE_P(0);
  RangeBound lower;
  RangeBound upper;
  bool empty = false;
  range_deserialize(range_get_typcache(fcinfo, RangeTypeGetOid(shards)), shards, &lower, &upper,
                    &empty);
  // As every int4range that is stored: lower bound inclusive, upper bound exclusive.
  const int64_t first = DatumGetInt32(lower.val);
  const int64_t end = DatumGetInt32(upper.val);
  if (empty || lower.infinite || upper.infinite || first < 0 || end > int64_t{layout.shards()})
    error_shards_range(OidOutputFunctionCall(F_RANGE_OUT, PG_GETARG_DATUM(0)));
  return {static_cast<uint32_t>(first), static_cast<uint32_t>(end)};
}

// How far the next id of a shard would be ahead of the clock, in ticks.
uint64_t ahead(uint32_t shard, uint64_t now) {
  const uint64_t next = layout.tick_of_position(word_of(hold.words, shard).last() + 1);
  return next > now ? next - now : 0;
}

// Sessions begin at different shards.
uint32_t start_of(const Range& range) {
  const uint64_t spread = (static_cast<uint64_t>(MyProcPid) * 0x9e3779b97f4a7c15) >> 32;
  return range.first + static_cast<uint32_t>(spread * (range.end - range.first) >> 32);
}

uint32_t choose(const Range& range) {
  const uint32_t start = range.contains(last_used) ? last_used : start_of(range);
  const int64_t clock_ms = wall_clock_ms();
  const bool words = clock_ms >= layout.epoch_ms;  // else next_id() says what is wrong
  const uint64_t now = words ? layout.tick_at(clock_ms) : 0;
  uint32_t best = UINT32_MAX;
  uint64_t least = UINT64_MAX;
  int looks = 0;
  uint32_t shard = start;
  do {
    if (owned_shards.contains(shard)) {
      const uint64_t lead = words ? ahead(shard, now) : 0;
      if (lead < least) {
        least = lead;
        best = shard;
      }
      if (lead == 0 || ++looks == kLooks) break;
    }
    shard = range.next(shard);
  } while (shard != start);
  // None is owned: next_id() refuses the first.
  return best == UINT32_MAX ? range.first : best;
}

}  // namespace

SF_SQL_FUNCTION(next_id_in) {
  if (shared_state == nullptr) error_not_preloaded();
  if (PG_ARGISNULL(0)) error_shard_null();
  if (XactReadOnly) error_read_only("next_id_in()");
  if (IsInParallelMode()) error_parallel("next_id_in()");
  const Range range = range_of(fcinfo);
  // The words are known then, and which shards are left out.
  WaitBudget budget;
  while (!hold.good()) attach(budget);
  last_used = choose(range);
  return DirectFunctionCall1(snowflake_next_id, Int32GetDatum(static_cast<int32>(last_used)));
}

}  // namespace snowflake::pg
