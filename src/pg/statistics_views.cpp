// Behind the views shard_stats, database_stats and refusals; reset_stats().

#include "core/clock.hpp"
#include "pg/datum.hpp"
#include "pg/errors.hpp"
#include "pg/pending_counters.hpp"
#include "pg/seal_check.hpp"
#include "pg/settings.hpp"
#include "pg/statistics.hpp"
#include "pg/postgres.hpp"

namespace snowflake::pg {

namespace {

int64_t count_of(const std::atomic<uint64_t>& counter) {
  return static_cast<int64_t>(counter.load(std::memory_order_relaxed));
}

int64_t capacity() {
  return static_cast<int64_t>(layout.ids_per_tick() * 1000 / layout.tick_ms);
}

int64_t stats_since_ms(const DatabaseState* state) {
  const int64_t reset_ms =
      state == nullptr ? 0 : statistics_of(*state).since_ms.load(std::memory_order_relaxed);
  return reset_ms == 0 ? shared_state->started_ms : reset_ms;
}

double rate(int64_t ids, int64_t since_ms) {
  const int64_t ms = std::max<int64_t>(1, wall_clock_ms() - since_ms);
  return std::rint(static_cast<double>(ids) * 1e6 / static_cast<double>(ms)) / 1000;
}

// The counters of all shards together.
struct Sums {
  int64_t ids;
  int64_t batches;
  int64_t borrowed;
  int64_t waits;
  int64_t waited_us;
};

Sums sums_of(const DatabaseState& state) {
  Sums sums{};
  const Shard* const words = words_of(state);
  for (uint32_t i = 0; i < word_count(); ++i) {
    const Counters& counters = words[i].counters;
    sums.ids += count_of(counters.ids);
    sums.batches += count_of(counters.batches);
    sums.borrowed += count_of(counters.borrowed);
    sums.waits += count_of(counters.waits);
    sums.waited_us += count_of(counters.waited_us);
  }
  return sums;
}

void put_row(FunctionCallInfo fcinfo, Datum* values, bool* nulls) {
  const auto result = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
  tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

// Statistics of a database that has no place: nothing was counted.
constinit const Statistics kNothing{};

}  // namespace

SF_SQL_FUNCTION(shard_stats) {
  require_seal();
  flush_pending_counters();
  InitMaterializedSRF(fcinfo, 0);
  const DatabaseState* const state = find_database_state();
  if (state == nullptr) return Datum{0};
  const int64_t since_ms = stats_since_ms(state);
  const Shard* const words = words_of(*state);
  for (uint32_t i = 0; i < word_count(); ++i) {
    const Counters& counters = words[i].counters;
    const auto last_id = static_cast<uint64_t>(count_of(counters.last_id));
    // Waits and refusals count at once, ids at the end of the transaction.
    if (last_id == 0 && count_of(counters.waits) == 0 && count_of(counters.refusals) == 0) continue;
    Datum values[12] = {
        // Where several shards share a word, the one that minted last speaks for them.
        Int32GetDatum(static_cast<int32>(last_id == 0 ? i : layout.shard_of(last_id))),
        Int64GetDatum(static_cast<int64_t>(last_id)),
        timestamp_datum(layout.ms_of_tick(layout.tick_of(last_id))),
        Int64GetDatum(count_of(counters.ids)),
        Int64GetDatum(count_of(counters.batches)),
        Int64GetDatum(count_of(counters.borrowed)),
        Int64GetDatum(count_of(counters.waits)),
        milliseconds_datum(count_of(counters.waited_us)),
        Int64GetDatum(count_of(counters.refusals)),
        Float8GetDatum(rate(count_of(counters.ids), since_ms)),
        Int64GetDatum(capacity()),
        timestamp_datum(since_ms),
    };
    bool nulls[12] = {};
    nulls[1] = nulls[2] = last_id == 0;
    put_row(fcinfo, values, nulls);
  }
  return Datum{0};
}

SF_SQL_FUNCTION(database_stats) {
  require_seal();
  flush_pending_counters();
  const DatabaseState* const state = find_database_state();
  const Sums sums = state == nullptr ? Sums{} : sums_of(*state);
  const Statistics& counts = state == nullptr ? kNothing : statistics_of(*state);
  const int64_t since_ms = stats_since_ms(state);
  int64_t refusals = 0;
  for (const Refusals& cause : counts.refusals) refusals += count_of(cause.count);
  Datum values[15] = {
      timestamp_datum(since_ms),
      Int64GetDatum(sums.ids),
      Int64GetDatum(sums.batches),
      Int64GetDatum(sums.borrowed),
      Int64GetDatum(sums.waits + count_of(counts.waits)),
      milliseconds_datum(sums.waited_us + count_of(counts.waited_us)),
      Int64GetDatum(refusals),
      Int64GetDatum(count_of(counts.mark_extensions)),
      Int64GetDatum(count_of(counts.mark_flushes)),
      milliseconds_datum(count_of(counts.mark_flush_us)),
      milliseconds_datum(counts.longest_mark_flush_us.load(std::memory_order_relaxed)),
      Int64GetDatum(count_of(counts.commit_waits)),
      milliseconds_datum(count_of(counts.commit_waited_us)),
      Float8GetDatum(rate(sums.ids, since_ms)),
      Int64GetDatum(capacity()),
  };
  bool nulls[15] = {};
  PG_RETURN_DATUM(row_datum(fcinfo, values, nulls));
}

// Not refused where the seal is wrong: these are the refusals that tell of it.
SF_SQL_FUNCTION(refusals) {
  if (shared_state == nullptr) error_not_preloaded();
  InitMaterializedSRF(fcinfo, 0);
  DatabaseState* const state = find_database_state();
  const Statistics& counts = state == nullptr ? kNothing : statistics_of(*state);
  for (int i = 0; i < kCauses; ++i) {
    const Refusals& refusals = counts.refusals[i];
    const int64_t last_ms = refusals.last_ms.load(std::memory_order_relaxed);
    const int64_t since_ms = refusals.since_ms.load(std::memory_order_relaxed);
    Datum values[4] = {CStringGetTextDatum(refusal_label(static_cast<Cause>(i))),
                       Int64GetDatum(count_of(refusals.count)), timestamp_datum(last_ms),
                       timestamp_datum(since_ms)};
    bool nulls[4] = {false, false, last_ms == 0, since_ms == 0};
    put_row(fcinfo, values, nulls);
  }
  return Datum{0};
}

SF_SQL_FUNCTION(reset_stats) {
  if (shared_state == nullptr) error_not_preloaded();
  flush_pending_counters();
  DatabaseState* const state = find_database_state();
  if (state == nullptr) PG_RETURN_VOID();
  Shard* const words = words_of(*state);
  for (uint32_t i = 0; i < word_count(); ++i) words[i].counters.reset();
  reset_statistics(*state);
  PG_RETURN_VOID();
}

}  // namespace snowflake::pg
