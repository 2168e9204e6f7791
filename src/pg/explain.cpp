// explain_id(): what is to be known of a number as an id.

#include "core/clock.hpp"
#include "pg/datum.hpp"
#include "pg/errors.hpp"
#include "pg/settings.hpp"
#include "pg/shared_state.hpp"
#include "pg/postgres.hpp"

namespace snowflake::pg {

SF_SQL_FUNCTION(explain_id) {
  if (shared_state == nullptr) error_not_preloaded();
  const auto id = static_cast<uint64_t>(PG_GETARG_INT64(0));
  Datum values[9] = {Int64GetDatum(static_cast<int64_t>(id))};
  bool nulls[9] = {};
  std::fill(nulls + 1, nulls + 9, true);
  if (layout.contains(id)) {
    const int64_t ms = layout.ms_of_tick(layout.tick_of(id));
    values[1] = timestamp_datum(ms);
    values[2] = interval_datum((wall_clock_ms() - ms) * 1000);
    values[3] = Int32GetDatum(static_cast<int32>(layout.region_of(id)));
    values[4] = Int32GetDatum(static_cast<int32>(layout.shard_of(id)));
    values[5] = Int32GetDatum(static_cast<int32>(layout.sequence_of(id)));
    std::fill(nulls + 1, nulls + 6, false);
  }
  PG_RETURN_DATUM(row_datum(fcinfo, values, nulls));
}

}  // namespace snowflake::pg
