// Behind the views layout and clock_status.

#include "core/clock.hpp"
#include "pg/clock/clock_bounds.hpp"
#include "pg/clock/clock_watch.hpp"
#include "pg/mark/condition.hpp"
#include "pg/server/datum.hpp"
#include "pg/mark/seal_check.hpp"
#include "pg/memory/postmaster_memory.hpp"
#include "pg/server/settings.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

int64_t count_of(const std::atomic<uint64_t>& counter) {
  return static_cast<int64_t>(counter.load(std::memory_order_relaxed));
}

// The share of the minted range that has passed, in per cent.
double used_percent() {
  const auto range = static_cast<double>(layout.last_minted_tick() + 1) * layout.tick_ms;
  const auto passed = static_cast<double>(wall_clock_ms() - layout.epoch_ms);
  return std::rint(std::max(0.0, passed) / range * 10000) / 100;
}

}  // namespace

SF_SQL_FUNCTION(layout) {
  require_seal();
  Datum values[12] = {
      CStringGetTextDatum(layout_bits_text(layout)),
      Int32GetDatum(layout.time_bits),
      Int32GetDatum(layout.region_bits),
      Int32GetDatum(layout.shard_bits),
      Int32GetDatum(layout.sequence_bits),
      Int32GetDatum(static_cast<int32>(layout.tick_ms)),
      timestamp_datum(layout.epoch_ms),
      Int32GetDatum(static_cast<int32>(layout.regions())),
      Int32GetDatum(static_cast<int32>(layout.shards())),
      Int64GetDatum(static_cast<int64_t>(layout.ids_per_tick() * 1000 / layout.tick_ms)),
      timestamp_datum(layout.ms_of_tick(layout.last_minted_tick() + 1)),
      Float8GetDatum(used_percent()),
  };
  bool nulls[12] = {};
  PG_RETURN_DATUM(row_datum(fcinfo, values, nulls));
}

SF_SQL_FUNCTION(clock_status) {
  require_seal();
  const Condition condition = condition_of_database();
  const DatabaseState* const state = condition.state;
  const int64_t floor_ms = state == nullptr ? 0 : state->floor_ms.load(std::memory_order_relaxed);
  const ClockWatch& watch = shared_state->clock;
  const ClockBounds bounds = clock_bounds();
  Datum values[15] = {
      timestamp_datum(condition.clock_ms),
      BoolGetDatum(condition.minting()),
      condition.minting() ? Datum{0} : CStringGetTextDatum(condition.reason()),
      timestamp_datum(std::min(floor_ms, layout.ms_of_tick(layout.last_minted_tick() + 1))),
      timestamp_datum(condition.covered_ms),
      Float8GetDatum(static_cast<double>(condition.lead_ms)),
      milliseconds_datum(clock_drift_us()),
      Int64GetDatum(count_of(watch.backward_steps)),
      milliseconds_datum(watch.largest_backward_us.load(std::memory_order_relaxed)),
      Int64GetDatum(count_of(watch.forward_steps)),
      milliseconds_datum(watch.largest_forward_us.load(std::memory_order_relaxed)),
      BoolGetDatum(bounds.synchronized),
      milliseconds_datum(bounds.offset_us),
      milliseconds_datum(bounds.estimated_error_us),
      milliseconds_datum(bounds.maximum_error_us),
  };
  bool nulls[15] = {};
  nulls[2] = condition.minting();
  nulls[3] = floor_ms == 0;
  // The mark is written as ids come to it: idle, not broken.
  nulls[4] = condition.covered_ms <= condition.clock_ms;
  std::fill(nulls + 11, nulls + 15, !bounds.known);
  PG_RETURN_DATUM(row_datum(fcinfo, values, nulls));
}

}  // namespace snowflake::pg
