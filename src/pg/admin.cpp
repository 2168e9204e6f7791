// What the extension's script and administrators call.

#include "pg/clock_watch.hpp"
#include "pg/datum.hpp"
#include "pg/errors.hpp"
#include "pg/high_water.hpp"
#include "pg/seal_check.hpp"
#include "pg/session.hpp"
#include "pg/settings.hpp"
#include "pg/postgres.hpp"

namespace snowflake::pg {

namespace {

// The greatest time that ids of this server may have reached: a new extension must begin above what
// a dropped one of this database minted, and above what other databases hold.
int64_t highest_limit_ms() {
  int64_t highest = 0;
  LWLockAcquire(state->lock, LW_SHARED);
  for (int i = 0; i < max_databases; ++i) {
    const uint64_t limit = slots[i].limit.read();
    if (limit != 0) highest = std::max(highest, layout.ms_of_tick(layout.tick_of_position(limit)));
    if (slots[i].database == MyDatabaseId)
      highest = std::max(highest, slots[i].known_ms.load(std::memory_order_relaxed));
  }
  LWLockRelease(state->lock);
  return highest;
}

}  // namespace

// Only the extension's script calls it, and drops it.
SF_SQL_FUNCTION(initial_state) {
  if (state == nullptr) error_not_preloaded();
  const int64_t clock_ms = wall_clock_ms();
  if (clock_ms < layout.epoch_ms) error_clock_before_epoch(clock_ms);
  if (clock_jumped_ahead()) error_clock_jumped(clock_drift_us() / 1000);

  Datum values[2] = {Int64GetDatum(seal_of(layout)),
                     Int64GetDatum(std::max(clock_ms, highest_limit_ms()))};
  bool nulls[2] = {};
  PG_RETURN_DATUM(row_datum(fcinfo, values, nulls));
}

SF_SQL_FUNCTION(observe) {
  if (state == nullptr) error_not_preloaded();
  if (PG_ARGISNULL(0)) error_id_null();
  if (XactReadOnly) error_read_only("observe()");
  if (IsInParallelMode()) error_parallel("observe()");
  require_seal();

  const int64_t signed_id = PG_GETARG_INT64(0);
  const auto id = static_cast<uint64_t>(signed_id);
  if (!layout.contains(id)) error_foreign_id(signed_id);
  const uint64_t tick = layout.tick_of(id);
  if (tick > layout.last_minted_tick()) error_observe_exhausted(signed_id);
  const int64_t clock_ms = wall_clock_ms();
  const int64_t id_ms = layout.ms_of_tick(tick);
  if (id_ms > clock_ms + max_lead_ms) error_observe_ahead(signed_id, id_ms, clock_ms);
  if (clock_jumped_ahead()) error_clock_jumped(clock_drift_us() / 1000);

  // Durable first, or a crash would forget what the caller was told.
  raise_mark(layout.ms_of_tick(tick + 1));
  lift_words(layout.first_position(tick + 1));
  PG_RETURN_VOID();
}

SF_SQL_FUNCTION(accept_clock) {
  if (state == nullptr) error_not_preloaded();
  const int64_t drift_us = clock_drift_us();
  accept_clock();
  ereport(LOG, (errmsg("snowflake accepts a clock that moved by %lld ms",
                       static_cast<long long>(drift_us / 1000))));
  PG_RETURN_DATUM(interval_datum(drift_us));
}

}  // namespace snowflake::pg
