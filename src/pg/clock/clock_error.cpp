#include "pg/clock/clock_error.hpp"

#include <sys/timex.h>

#include "core/clock.hpp"
#include "pg/server/datum.hpp"
#include "pg/errors/errors_clock_error.hpp"
#include "pg/memory/shared_state.hpp"
#include "pg/server/settings.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

// The kernel increases its clock error once a second, by 500 ppm, so the reported error may be 500
// microseconds too low.
constexpr int64_t kStaleUs = 500;

TimestampTz timestamp_of_us(int64_t unix_us) {
  return unix_us - kPostgresEpochMs * 1000;
}

}  // namespace

int64_t max_clock_error_us() {
  return static_cast<int64_t>(max_clock_error_ms * 1000);
}

ClockBounds clock_bounds() {
  ClockBounds bounds{};
  timex kernel{};
  const int state = adjtimex(&kernel);
  bounds.known = state != -1;
  if (bounds.known) {
    bounds.synchronized = state != TIME_ERROR && (kernel.status & STA_UNSYNC) == 0;
    bounds.offset_us = kernel.status & STA_NANO ? kernel.offset / 1000 : kernel.offset;
    bounds.estimated_error_us = kernel.esterror;
    bounds.maximum_error_us = kernel.maxerror + kStaleUs;
  }
  if (clock_error_ms >= 0) {
    bounds.known = bounds.synchronized = bounds.from_setting = true;
    bounds.estimated_error_us = bounds.maximum_error_us =
        static_cast<int64_t>(std::ceil(clock_error_ms * 1000));
  }
  if (bounds.maximum_error_us > max_clock_error_us()) bounds.synchronized = false;
  return bounds;
}

SF_SQL_FUNCTION(now_bounds) {
  require_shared_state();
  const ClockBounds bounds = clock_bounds();
  if (!bounds.synchronized) error_clock_unsynchronized(bounds);
  const int64_t clock_us = wall_clock_us();
  Datum values[2] = {TimestampTzGetDatum(timestamp_of_us(clock_us - bounds.maximum_error_us)),
                     TimestampTzGetDatum(timestamp_of_us(clock_us + bounds.maximum_error_us))};
  bool nulls[2] = {};
  PG_RETURN_DATUM(row_datum(fcinfo, values, nulls));
}

}  // namespace snowflake::pg
