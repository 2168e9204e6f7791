// Behind the views: layout, shard_stats, clock_status.

#include "pg/clock_watch.hpp"
#include "pg/datum.hpp"
#include "pg/seal_check.hpp"
#include "pg/session.hpp"
#include "pg/settings.hpp"
#include "pg/postgres.hpp"

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
      Int32GetDatum(layout.local_bits),
      Int32GetDatum(layout.sequence_bits),
      interval_datum(int64_t{layout.tick_ms} * 1000),
      timestamp_datum(layout.epoch_ms),
      Int32GetDatum(static_cast<int32>(layout.shards())),
      Int32GetDatum(static_cast<int32>(layout.ids_per_tick())),
      Int64GetDatum(static_cast<int64_t>(layout.ids_per_tick() * 1000 / layout.tick_ms)),
      timestamp_datum(layout.ms_of_tick(layout.last_minted_tick() + 1)),
      Float8GetDatum(used_percent()),
  };
  bool nulls[12] = {};
  PG_RETURN_DATUM(row_datum(fcinfo, values, nulls));
}

SF_SQL_FUNCTION(shard_stats) {
  require_seal();
  add_pending_counters();
  InitMaterializedSRF(fcinfo, 0);
  const auto result = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
  for (uint32_t i = 0; i < word_count(); ++i) {
    const Counters& counters = shards[i].counters;
    const auto last_id = static_cast<uint64_t>(count_of(counters.last_id));
    // Waits and refusals count at once, ids at the end of the transaction.
    if (last_id == 0 && count_of(counters.waits) == 0 && count_of(counters.refusals) == 0) continue;
    Datum values[9] = {
        // Where several shards share a word, the one that minted last speaks for them.
        Int32GetDatum(static_cast<int32>(last_id == 0 ? i : layout.shard_of(last_id))),
        Int64GetDatum(static_cast<int64_t>(last_id)),
        timestamp_datum(layout.ms_of_tick(layout.tick_of(last_id))),
        Int64GetDatum(count_of(counters.ids)),
        Int64GetDatum(count_of(counters.batches)),
        Int64GetDatum(count_of(counters.borrowed)),
        Int64GetDatum(count_of(counters.waits)),
        interval_datum(count_of(counters.waited_us)),
        Int64GetDatum(count_of(counters.refusals)),
    };
    bool nulls[9] = {};
    nulls[1] = nulls[2] = last_id == 0;
    tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
  }
  return Datum{0};
}

SF_SQL_FUNCTION(clock_status) {
  require_seal();
  look_at_clock();
  const int64_t clock_ms = wall_clock_ms();

  int64_t floor_ms = 0;
  uint64_t limit = 0;
  LWLockAcquire(state->lock, LW_SHARED);
  for (int i = 0; i < max_databases; ++i) {
    if (slots[i].database != MyDatabaseId) continue;
    floor_ms = slots[i].floor_ms.load(std::memory_order_relaxed);
    limit = slots[i].limit.read();
  }
  LWLockRelease(state->lock);

  uint64_t furthest = 0;
  for (uint32_t i = 0; i < word_count(); ++i) furthest = std::max(furthest, shards[i].last());
  const int64_t lead_ms =
      furthest == 0
          ? 0
          : std::max<int64_t>(0, layout.ms_of_tick(layout.tick_of_position(furthest)) - clock_ms);

  const ClockWatch& watch = state->clock;
  Datum values[7] = {
      timestamp_datum(clock_ms),
      timestamp_datum(std::min(floor_ms, layout.ms_of_tick(layout.last_minted_tick() + 1))),
      timestamp_datum(layout.ms_of_tick(layout.tick_of_position(limit))),
      interval_datum(lead_ms * 1000),
      interval_datum(clock_drift_us()),
      Int64GetDatum(count_of(watch.backward_steps)),
      interval_datum(watch.largest_backward_us.load(std::memory_order_relaxed)),
  };
  bool nulls[7] = {};
  nulls[1] = floor_ms == 0;
  nulls[2] = limit == 0;
  PG_RETURN_DATUM(row_datum(fcinfo, values, nulls));
}

}  // namespace snowflake::pg
