#include "pg/errors/errors.hpp"
#include "pg/checks/seal_check.hpp"
#include "pg/server/settings.hpp"
#include "pg/server/text.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

// The member `floor` is the last tick (time unit) that begins at or before the given time. The
// member `ceiling` is the first tick (time unit) that begins at or after the given time.
struct Ticks {
  uint64_t floor;
  uint64_t ceiling;
};

uint64_t minted(uint64_t tick, TimestampTz at) {
  if (tick > layout.last_minted_tick()) error_timestamp(at);
  return tick;
}

// Near the end of the layout's time range, `ceiling` can be one tick after the last tick that can
// be minted.
Ticks ticks_of(TimestampTz at) {
  if (TIMESTAMP_NOT_FINITE(at)) error_timestamp(at);
  const int64_t since_us = at - timestamp_of_ms(layout.epoch_ms);
  if (since_us < 0) error_timestamp(at);
  const uint64_t tick = minted(layout.tick_at(layout.epoch_ms + since_us / 1000), at);
  const bool begins_then = timestamp_of_ms(layout.ms_of_tick(tick)) == at;
  return {tick, begins_then ? tick : tick + 1};
}

int64_t first_id_of(uint64_t tick) {
  return static_cast<int64_t>(layout.id(layout.first_position(tick), 0, 0));
}

int64_t last_id_of(uint64_t tick) {
  return static_cast<int64_t>(layout.id(layout.first_position(tick) | layout.sequence_mask(),
                                        layout.regions() - 1, layout.shards() - 1));
}

// Returns the first tick (time unit) that begins at or after a time, limited to the time range of
// the layout.
uint64_t clamped_ceiling(TimestampTz at) {
  if (at <= timestamp_of_ms(layout.epoch_ms)) return 0;  // the time may be -infinity
  const uint64_t end = layout.last_minted_tick() + 1;
  if (at >= timestamp_of_ms(layout.ms_of_tick(end))) return end;
  return ticks_of(at).ceiling;
}

RangeBound id_bound(RangeBound bound, bool lower) {
  RangeBound result{};
  result.lower = lower;
  result.infinite = bound.infinite;
  result.inclusive = lower;
  if (bound.infinite) return result;
  const TimestampTz at = DatumGetTimestampTz(bound.val);
  const Ticks ticks = ticks_of(at);
  // For an inclusive lower bound or an exclusive upper bound, id_bound() returns the first id at or
  // after the bound's time. For a range of times (a, b], the ids begin with the first id after a,
  // and end before the first id after b.
  const bool after = lower != bound.inclusive;
  const uint64_t tick = after ? ticks.floor + 1 : ticks.ceiling;
  result.val = Int64GetDatum(first_id_of(minted(tick, at)));
  return result;
}

}  // namespace

SF_SQL_FUNCTION(min_id) {
  require_seal();
  const TimestampTz at = PG_GETARG_TIMESTAMPTZ(0);
  PG_RETURN_INT64(first_id_of(minted(ticks_of(at).ceiling, at)));
}

SF_SQL_FUNCTION(max_id) {
  require_seal();
  PG_RETURN_INT64(last_id_of(ticks_of(PG_GETARG_TIMESTAMPTZ(0)).floor));
}

SF_SQL_FUNCTION(last_id_before) {
  require_seal();
  const uint64_t tick = clamped_ceiling(PG_GETARG_TIMESTAMPTZ(0));
  PG_RETURN_INT64(tick == 0 ? -1 : last_id_of(tick - 1));
}

SF_SQL_FUNCTION(id_range) {
  require_seal();
  RangeType* const during = PG_GETARG_RANGE_P(0);
  TypeCacheEntry* const times = range_get_typcache(fcinfo, RangeTypeGetOid(during));
  RangeBound lower;
  RangeBound upper;
  bool empty = false;
  range_deserialize(times, during, &lower, &upper, &empty);
  if (!empty) {
    lower = id_bound(lower, true);
    upper = id_bound(upper, false);
  }
  TypeCacheEntry* const ids = lookup_type_cache(INT8RANGEOID, TYPECACHE_RANGE_INFO);
  lower.lower = true;
  upper.lower = false;
  PG_RETURN_RANGE_P(make_id_range(ids, &lower, &upper, empty));
}

SF_SQL_FUNCTION(make_id) {
  require_seal();
  const uint64_t tick = ticks_of(PG_GETARG_TIMESTAMPTZ(0)).floor;
  const int32 shard = PG_GETARG_INT32(1);
  const int32 sequence = PG_GETARG_INT32(2);
  const int32 region = PG_GETARG_INT32(3);
  if (static_cast<uint32_t>(shard) >= layout.shards()) error_shard_range(shard);
  if (sequence < 0 || static_cast<uint64_t>(sequence) > layout.sequence_mask())
    error_sequence_range(sequence);
  if (static_cast<uint32_t>(region) >= layout.regions()) error_region_range(region);
  const uint64_t position = layout.first_position(tick) | static_cast<uint64_t>(sequence);
  PG_RETURN_INT64(static_cast<int64_t>(
      layout.id(position, static_cast<uint32_t>(region), static_cast<uint32_t>(shard))));
}

}  // namespace snowflake::pg
