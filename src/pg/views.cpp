// Behind the views: layout, shard_stats, clock_status.

#include "core/clock.hpp"
#include "pg/clock_watch.hpp"
#include "pg/datum.hpp"
#include "pg/high_water.hpp"
#include "pg/pending_counters.hpp"
#include "pg/seal_check.hpp"
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

Datum milliseconds(int64_t us) {
  return Float8GetDatum(static_cast<double>(us) / 1000);
}

// How far the shard that is furthest ahead of the clock is, in ms; 0 where none is.
int64_t lead_ms(const DatabaseState* state, int64_t clock_ms) {
  uint64_t furthest = 0;
  if (state != nullptr) {
    const Shard* const words = words_of(*state);
    for (uint32_t i = 0; i < word_count(); ++i) furthest = std::max(furthest, words[i].last());
  }
  if (furthest == 0) return 0;
  return std::max<int64_t>(0, layout.ms_of_tick(layout.tick_of_position(furthest)) - clock_ms);
}

// Why a call would be refused or wait, in a few words; null where it would not.
const char* why_not_minting(const DatabaseState* state, int64_t clock_ms, int64_t lead) {
  if (RecoveryInProgress()) return "standby";
  if (clock_ms < layout.epoch_ms) return "clock before the epoch";
  if (layout.tick_at(clock_ms) > layout.last_minted_tick()) return "layout exhausted";
  if (clock_jumped_ahead()) return "clock jumped ahead";
  if (const char* trouble = trouble_with_mark()) return trouble;
  if (state == nullptr && !place_is_left()) return "too many databases";
  if (lead > max_lead_ms + static_cast<int64_t>(layout.tick_ms)) return "clock behind the ids";
  return nullptr;
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

SF_SQL_FUNCTION(shard_stats) {
  require_seal();
  flush_pending_counters();
  InitMaterializedSRF(fcinfo, 0);
  const DatabaseState* const state = find_database_state();
  if (state == nullptr) return Datum{0};
  const Shard* const words = words_of(*state);
  const auto result = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
  for (uint32_t i = 0; i < word_count(); ++i) {
    const Counters& counters = words[i].counters;
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
        milliseconds(count_of(counters.waited_us)),
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
  const DatabaseState* const state = find_database_state();
  const int64_t lead = lead_ms(state, clock_ms);
  const char* const reason = why_not_minting(state, clock_ms, lead);
  const int64_t floor_ms = state == nullptr ? 0 : state->floor_ms.load(std::memory_order_relaxed);
  const uint64_t limit = state == nullptr ? 0 : state->limit.read();
  const int64_t covered_ms = layout.ms_of_tick(layout.tick_of_position(limit));

  const ClockWatch& watch = shared_state->clock;
  Datum values[9] = {
      timestamp_datum(clock_ms),
      BoolGetDatum(reason == nullptr),
      reason == nullptr ? Datum{0} : CStringGetTextDatum(reason),
      timestamp_datum(std::min(floor_ms, layout.ms_of_tick(layout.last_minted_tick() + 1))),
      timestamp_datum(covered_ms),
      milliseconds(lead * 1000),
      milliseconds(clock_drift_us()),
      Int64GetDatum(count_of(watch.backward_steps)),
      milliseconds(watch.largest_backward_us.load(std::memory_order_relaxed)),
  };
  bool nulls[9] = {};
  nulls[2] = reason == nullptr;
  nulls[3] = floor_ms == 0;
  nulls[4] = covered_ms <= clock_ms;  // the mark is written as ids come to it: idle, not broken
  PG_RETURN_DATUM(row_datum(fcinfo, values, nulls));
}

}  // namespace snowflake::pg
