#include "core/clock.hpp"
#include "core/clock_base.hpp"
#include "core/origin_fingerprint.hpp"
#include "pg/clock/clock_watch.hpp"
#include "pg/server/datum.hpp"
#include "pg/errors/errors.hpp"
#include "pg/errors/errors_clone.hpp"
#include "pg/mark/high_water.hpp"
#include "pg/errors/log_messages.hpp"
#include "pg/checks/mark_check.hpp"
#include "pg/checks/seal_check.hpp"
#include "pg/memory/mark_hold.hpp"
#include "pg/memory/postmaster_memory.hpp"
#include "pg/server/settings.hpp"
#include "pg/checks/clone_check.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

SF_SQL_FUNCTION(observe) {
  require_shared_state();
  if (XactReadOnly) error_read_only("observe()");
  if (IsInParallelMode()) error_parallel("observe()");
  // A null argument is ignored, because observe(max(id)) of an empty table must not stop a
  // migration.
  if (PG_ARGISNULL(0)) {
    notice_nothing_observed();
    PG_RETURN_VOID();
  }
  require_seal();

  const int64_t id = PG_GETARG_INT64(0);
  if (!layout.contains(static_cast<uint64_t>(id))) error_foreign_id(id);
  const uint64_t tick = layout.tick_of(static_cast<uint64_t>(id));
  const int64_t clock_ms = wall_clock_ms();
  const int64_t id_ms = layout.ms_of_tick(tick);
  if (id_ms > clock_ms + max_lead_ms) error_id_ahead(id, id_ms, clock_ms, max_lead_ms);

  // The high-water mark is made durable first, so that a crash cannot undo an observe() that has
  // returned.
  raise_mark(layout.ms_of_tick(tick + 1));
  raise_floor(*hold.state, layout.first_position(tick + 1));
  PG_RETURN_VOID();
}

SF_SQL_FUNCTION(set_mark) {
  require_shared_state();
  if (XactReadOnly) error_read_only("set_mark()");
  const TimestampTz at = PG_GETARG_TIMESTAMPTZ(0);
  const int64_t end_ms = layout.ms_of_tick(layout.last_minted_tick() + 1);
  if (TIMESTAMP_NOT_FINITE(at) || at < timestamp_of_ms(layout.epoch_ms) ||
      at > timestamp_of_ms(end_ms))
    error_timestamp(at);
  // Rounds the time `at` up to whole milliseconds.
  const int64_t ms = layout.epoch_ms + (at - timestamp_of_ms(layout.epoch_ms) + 999) / 1000;
  PG_RETURN_DATUM(timestamp_datum(set_mark(ms)));
}

SF_SQL_FUNCTION(accept_clone) {
  require_shared_state();
  if (XactReadOnly) error_read_only("accept_clone()");
  const Moved moved = accept_clone();
  log_clone_accepted(moved);
  PG_RETURN_BOOL(moved.any());
}

SF_SQL_FUNCTION(accept_clock) {
  require_shared_state();
  const int64_t drift_us = clock_drift_us();
  accept_clock();
  check_clock();
  log_clock_accepted(drift_us / 1000);
  PG_RETURN_DATUM(interval_datum(drift_us));
}

}  // namespace snowflake::pg
