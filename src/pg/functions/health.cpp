#include "core/clock.hpp"
#include "core/clock_base.hpp"
#include "pg/clock/clock_error.hpp"
#include "pg/checks/database_health.hpp"
#include "pg/functions/adopted_problem.hpp"
#include "pg/server/row.hpp"
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
    const auto cause = static_cast<Cause>(i);
    const int64_t at_ms = refusals_seen(state, cause).last_ms;
    if (at_ms > last.at_ms) last = {at_ms, cause};
  }
  return last;
}

Datum without_memory(FunctionCallInfo fcinfo, Blocker blocker) {
  const RefusalText& text = text_of(blocker);
  return row_of(fcinfo, {
                            {"minting", BoolGetDatum(false)},
                            {"reason", text.reason},
                            {"advice", text.hint},
                            {"clock", timestamp_datum(wall_clock_ms())},
                            {"mark", 0, true},
                            {"covered_until", 0, true},
                            {"lead_ms", 0, true},
                            {"drift_ms", 0, true},
                            {"synchronized", 0, true},
                            {"maximum_error_ms", 0, true},
                            {"last_refusal", 0, true},
                            {"last_refusal_cause", 0, true},
                            {"layout_ends_at", 0, true},
                            {"cloned", 0, true},
                        });
}

struct Reason {
  const char* reason;  // null: no problem
  const char* advice;
};

// The view `health` shows only the first problem in this order: minting is blocked, adopted columns
// do not mint, ids are not unique.
Reason reason_of(const DatabaseHealth& health) {
  if (health.reason() != nullptr) return {health.reason(), health.advice()};
  if (const char* const adopted = adopted_problem()) return {adopted, kAdoptedAdvice};
  if (health.same_ids != nullptr) return {SharedIds::reason, health.same_ids};
  return {nullptr, nullptr};
}

}  // namespace

SF_SQL_FUNCTION(health) {
  if (const Blocker fault = try_open_shared_state(); fault != Blocker::none)
    PG_RETURN_DATUM(without_memory(fcinfo, fault));
  const DatabaseHealth health = database_health();
  const Reason reason = reason_of(health);
  const ClockBounds bounds = clock_bounds();
  const LastRefusal refusal = last_refusal(health.state);
  const int64_t end_ms = layout.ms_of_tick(layout.last_minted_tick() + 1);
  return row_of(
      fcinfo,
      {
          {"minting", BoolGetDatum(health.minting())},
          {"reason", reason.reason},
          {"advice", reason.advice},
          {"clock", timestamp_datum(health.clock_ms)},
          {"mark", timestamp_datum(std::clamp<int64_t>(health.mark_ms, 0, end_ms)),
           health.mark_ms == 0},
          {"covered_until", timestamp_datum(health.covered_ms),
           health.covered_ms <= health.clock_ms},
          {"lead_ms", Float8GetDatum(static_cast<double>(health.lead_ms))},
          {"drift_ms", milliseconds_datum(clock_drift_us())},
          {"synchronized", BoolGetDatum(bounds.synchronized), !bounds.known},
          {"maximum_error_ms", milliseconds_datum(bounds.maximum_error_us), !bounds.known},
          {"last_refusal", timestamp_datum(refusal.at_ms), refusal.at_ms == 0},
          {"last_refusal_cause", refusal.at_ms == 0 ? nullptr : text_of(refusal.cause).label},
          {"layout_ends_at", timestamp_datum(end_ms)},
          {"cloned", BoolGetDatum(health.cloned)},
      });
}

}  // namespace snowflake::pg
