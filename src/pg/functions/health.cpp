// Behind the view health: one row, whatever is wrong.

#include "core/clock.hpp"
#include "core/clock_base.hpp"
#include "pg/clock/clock_bounds.hpp"
#include "pg/clock/clock_watch.hpp"
#include "pg/mark/condition.hpp"
#include "pg/server/datum.hpp"
#include "pg/memory/postmaster_memory.hpp"
#include "pg/server/settings.hpp"
#include "pg/memory/statistics.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

struct LastRefusal {
  int64_t at_ms;
  Cause cause;
};

LastRefusal last_refusal(const DatabaseState* state) {
  LastRefusal last{};
  for (int i = 0; i < kCauses; ++i) {
    const Refusals& refusals = statistics_of(state).refusals[i];
    const int64_t at_ms = refusals.last_ms.load(std::memory_order_relaxed);
    if (is_ours(refusals) && at_ms > last.at_ms) last = {at_ms, static_cast<Cause>(i)};
  }
  return last;
}

Datum not_preloaded(FunctionCallInfo fcinfo) {
  const RefusalText& text = text_of(Obstacle::not_preloaded);
  Datum values[14] = {BoolGetDatum(false), CStringGetTextDatum(text.reason),
                      CStringGetTextDatum(text.hint), timestamp_datum(wall_clock_ms())};
  bool nulls[14] = {};
  std::fill(nulls + 4, nulls + 14, true);
  return row_datum(fcinfo, values, nulls);
}

}  // namespace

SF_SQL_FUNCTION(health) {
  if (shared_state == nullptr) PG_RETURN_DATUM(not_preloaded(fcinfo));
  const Condition condition = condition_of_database();
  const ClockBounds bounds = clock_bounds();
  const LastRefusal refusal = last_refusal(condition.state);
  const int64_t end_ms = layout.ms_of_tick(layout.last_minted_tick() + 1);
  const bool well = condition.reason() == nullptr;
  Datum values[14] = {
      BoolGetDatum(condition.minting()),
      well ? Datum{0} : CStringGetTextDatum(condition.reason()),
      well ? Datum{0} : CStringGetTextDatum(condition.advice()),
      timestamp_datum(condition.clock_ms),
      timestamp_datum(std::clamp<int64_t>(condition.mark_ms, 0, end_ms)),
      timestamp_datum(condition.covered_ms),
      Float8GetDatum(static_cast<double>(condition.lead_ms)),
      milliseconds_datum(clock_drift_us()),
      BoolGetDatum(bounds.synchronized),
      milliseconds_datum(bounds.maximum_error_us),
      timestamp_datum(refusal.at_ms),
      CStringGetTextDatum(text_of(refusal.cause).label),
      timestamp_datum(end_ms),
      BoolGetDatum(condition.copied),
  };
  bool nulls[14] = {};
  nulls[1] = nulls[2] = well;
  nulls[4] = condition.mark_ms == 0;
  nulls[5] = condition.covered_ms <= condition.clock_ms;
  nulls[8] = nulls[9] = !bounds.known;
  nulls[10] = nulls[11] = refusal.at_ms == 0;
  PG_RETURN_DATUM(row_datum(fcinfo, values, nulls));
}

}  // namespace snowflake::pg
