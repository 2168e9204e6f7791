// Every function with an id argument raises an error for a number that is not an id of the layout.

#include "pg/server/datum.hpp"
#include "pg/errors/errors.hpp"
#include "pg/checks/seal_check.hpp"
#include "pg/server/settings.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

uint64_t checked_id(Datum datum) {
  require_seal();
  const auto id = static_cast<uint64_t>(DatumGetInt64(datum));
  if (!layout.contains(id)) [[unlikely]]
    error_foreign_id(static_cast<int64_t>(id));
  return id;
}

TimestampTz time_of(uint64_t id) {
  return timestamp_of_ms(layout.ms_of_tick(layout.tick_of(id)));
}

}  // namespace

SF_SQL_FUNCTION(time_of) {
  PG_RETURN_TIMESTAMPTZ(time_of(checked_id(PG_GETARG_DATUM(0))));
}

SF_SQL_FUNCTION(shard_of) {
  PG_RETURN_INT32(static_cast<int32>(layout.shard_of(checked_id(PG_GETARG_DATUM(0)))));
}

SF_SQL_FUNCTION(region_of) {
  PG_RETURN_INT32(static_cast<int32>(layout.region_of(checked_id(PG_GETARG_DATUM(0)))));
}

SF_SQL_FUNCTION(sequence_of) {
  PG_RETURN_INT32(static_cast<int32>(layout.sequence_of(checked_id(PG_GETARG_DATUM(0)))));
}

SF_SQL_FUNCTION(decode) {
  const uint64_t id = checked_id(PG_GETARG_DATUM(0));
  Datum values[4] = {TimestampTzGetDatum(time_of(id)),
                     Int32GetDatum(static_cast<int32>(layout.region_of(id))),
                     Int32GetDatum(static_cast<int32>(layout.shard_of(id))),
                     Int32GetDatum(static_cast<int32>(layout.sequence_of(id)))};
  bool nulls[4] = {};
  PG_RETURN_DATUM(row_datum(fcinfo, values, nulls));
}

}  // namespace snowflake::pg
