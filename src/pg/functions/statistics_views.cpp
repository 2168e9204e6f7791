#include "core/clock.hpp"
#include "pg/server/row.hpp"
#include "pg/memory/lease_state.hpp"
#include "pg/memory/pending_counters.hpp"
#include "pg/checks/same_ids.hpp"
#include "pg/checks/seal_check.hpp"
#include "pg/server/settings.hpp"
#include "pg/server/text.hpp"
#include "pg/memory/statistics.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

int64_t capacity() {
  return static_cast<int64_t>(layout.ids_per_tick() * 1000 / layout.tick_ms);
}

int64_t stats_since_ms(const DatabaseState* state) {
  const int64_t reset_ms =
      state == nullptr ? 0 : statistics_of(*state).since_ms.load(std::memory_order_relaxed);
  return reset_ms == 0 ? shared_state->started_ms : reset_ms;
}

// Rates per second are computed from the time since boot, because the wall clock may have been
// stepped.
int64_t counted_us(const DatabaseState* state) {
  const int64_t reset_us =
      state == nullptr ? 0 : statistics_of(*state).since_us.load(std::memory_order_relaxed);
  return boot_us() - (reset_us == 0 ? shared_state->started_us : reset_us);
}

double rate(int64_t ids, int64_t us) {
  return std::rint(static_cast<double>(ids) * 1e9 /
                   static_cast<double>(std::max<int64_t>(us, 1000))) /
         1000;
}

struct Sums {
  int64_t ids;
  int64_t batches;
  int64_t borrowed;
  int64_t waits;
  int64_t waited_us;
};

Sums sums_of(const DatabaseState& state) {
  Sums sums{};
  for (const Shard& counter : state.shard_counters()) {
    const Counters& counters = counter.statistics;
    sums.ids += count_of(counters.ids);
    sums.batches += count_of(counters.batches);
    sums.borrowed += count_of(counters.borrowed);
    sums.waits += count_of(counters.waits);
    sums.waited_us += count_of(counters.waited_us);
  }
  return sums;
}

}  // namespace

SF_SQL_FUNCTION(shard_stats) {
  require_seal(SealUse::none);
  flush_pending_counters();
  InitMaterializedSRF(fcinfo, 0);
  const DatabaseState* const state = find_database_state();
  if (state == nullptr) return Datum{0};
  const int64_t since_ms = stats_since_ms(state);
  const int64_t us = counted_us(state);
  const std::span<Shard> shards = state->shard_counters();
  for (uint32_t i = 0; i < shards.size(); ++i) {
    const Counters& counters = shards[i].statistics;
    const auto last_id = static_cast<uint64_t>(count_of(counters.last_id));
    // Waits and refused calls are counted at once, but ids are counted only at the end of a
    // transaction.
    if (last_id == 0 && count_of(counters.waits) == 0 && count_of(counters.refusals) == 0) continue;
    put_row(fcinfo,
            {
                // If several shards share a counter, the view shows the shard that minted last.
                {"shard",
                 Int32GetDatum(static_cast<int32>(last_id == 0 ? i : layout.shard_of(last_id)))},
                {"last_id", Int64GetDatum(static_cast<int64_t>(last_id)), last_id == 0},
                {"last_time", timestamp_datum(layout.ms_of_tick(layout.tick_of(last_id))),
                 last_id == 0},
                {"ids", Int64GetDatum(count_of(counters.ids))},
                {"batches", Int64GetDatum(count_of(counters.batches))},
                {"borrowed_ticks", Int64GetDatum(count_of(counters.borrowed))},
                {"waits", Int64GetDatum(count_of(counters.waits))},
                {"wait_time", milliseconds_datum(count_of(counters.waited_us))},
                {"refusals", Int64GetDatum(count_of(counters.refusals))},
                {"rate", Float8GetDatum(rate(count_of(counters.ids), us))},
                {"capacity", Int64GetDatum(capacity())},
                {"stats_since", timestamp_datum(since_ms)},
            });
  }
  return Datum{0};
}

SF_SQL_FUNCTION(database_stats) {
  require_seal(SealUse::none);
  flush_pending_counters();
  const DatabaseState* const state = find_database_state();
  const Sums sums = state == nullptr ? Sums{} : sums_of(*state);
  const Statistics& counts = statistics_of(state);
  int64_t refusals = 0;
  for (int i = 0; i < kCauses; ++i) refusals += refusals_seen(state, static_cast<Cause>(i)).count;
  return row_of(
      fcinfo,
      {
          {"stats_since", timestamp_datum(stats_since_ms(state))},
          {"ids", Int64GetDatum(sums.ids)},
          {"batches", Int64GetDatum(sums.batches)},
          {"borrowed_ticks", Int64GetDatum(sums.borrowed)},
          {"waits", Int64GetDatum(sums.waits + count_of(counts.waits))},
          {"wait_time", milliseconds_datum(sums.waited_us + count_of(counts.waited_us))},
          {"refusals", Int64GetDatum(refusals)},
          {"mark_extensions", Int64GetDatum(count_of(counts.mark_extensions))},
          {"mark_flushes", Int64GetDatum(count_of(counts.mark_flushes))},
          {"mark_flush_time", milliseconds_datum(count_of(counts.mark_flush_us))},
          {"longest_mark_flush",
           milliseconds_datum(std::max(counts.longest_mark_flush_us.load(std::memory_order_relaxed),
                                       mark_stalled_for_us(counts)))},
          {"commit_waits", Int64GetDatum(count_of(counts.commit_waits))},
          {"commit_wait_time", milliseconds_datum(count_of(counts.commit_waited_us))},
          {"rate", Float8GetDatum(rate(sums.ids, counted_us(state)))},
          {"capacity", Int64GetDatum(capacity())},
      });
}

// The view `refusals` must work with an invalid stored layout (seal), because an invalid seal
// causes refusals.
SF_SQL_FUNCTION(refusals) {
  require_shared_state();
  InitMaterializedSRF(fcinfo, 0);
  DatabaseState* const state = find_database_state();
  for (int i = 0; i < kCauses; ++i) {
    const auto cause = static_cast<Cause>(i);
    const RefusalsSeen seen = refusals_seen(state, cause);
    put_row(fcinfo, {
                        {"cause", text_of(cause).label},
                        {"refusals", Int64GetDatum(seen.count)},
                        {"last_at", timestamp_datum(seen.last_ms), seen.last_ms == 0},
                        {"since", timestamp_datum(seen.since_ms), seen.since_ms == 0},
                    });
  }
  return Datum{0};
}

SF_SQL_FUNCTION(databases) {
  require_shared_state();
  InitMaterializedSRF(fcinfo, 0);
  for_each_database([=](const DatabaseState& state) {
    const char* const name = get_database_name(state.database);
    if (name == nullptr) return;  // the database was dropped
    const int64_t mark_ms = state.limits.highest_ms();
    const auto origin = chosen_origin(state, SessionStart{});
    const int32_t region = !origin ? kNoRegion : leased() ? lease_view().region : origin->region;
    put_row(fcinfo, {
                        {"database", name},
                        {"mark", timestamp_datum(mark_ms), mark_ms == 0},
                        {"ids", Int64GetDatum(sums_of(state).ids)},
                        {"region", Int32GetDatum(region), region == kNoRegion},
                        {"owned_shards", origin ? shards_text(origin->shards) : nullptr},
                        {"same_ids_as", find_same_ids(state).database},
                    });
  });
  return Datum{0};
}

SF_SQL_FUNCTION(reset_stats) {
  require_shared_state();
  flush_pending_counters();
  DatabaseState* const state = find_database_state();
  if (state != nullptr)
    for (Shard& counter : state->shard_counters()) counter.statistics.reset();
  reset_statistics(state);
  PG_RETURN_VOID();
}

}  // namespace snowflake::pg
