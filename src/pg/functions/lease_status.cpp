// Behind the view snowflake.lease.

#include "pg/server/datum.hpp"
#include "pg/refuse/errors.hpp"
#include "pg/memory/lease.hpp"
#include "pg/server/settings.hpp"
#include "pg/memory/shared_state.hpp"
#include "pg/server/text.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

SF_SQL_FUNCTION(lease) {
  if (shared_state == nullptr) error_not_preloaded();
  InitMaterializedSRF(fcinfo, 0);
  if (!leased()) return Datum{0};
  const auto result = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
  const LeaseView lease = lease_view();
  const LeaseReport last = lease_report();
  const bool held = lease.region != kNoRegion;
  Datum values[11] = {
      Int64GetDatum(lease_fleet()),
      Int32GetDatum(lease.region),
      timestamp_datum(lease.until_ms),
      timestamp_datum(lease.highest_ms),
      Float8GetDatum(static_cast<double>(lease_length_ms())),
      timestamp_datum(last.renewed_ms),
      Int64GetDatum(last.missed),
      timestamp_datum(last.contact_ms),
      Float8GetDatum(static_cast<double>(last.clocks_apart_ms)),
      Int64GetDatum(lease.incarnation),
      CStringGetTextDatum(last.message),
  };
  bool nulls[11] = {};
  nulls[0] = lease_fleet() == 0;
  nulls[1] = nulls[2] = !held;
  nulls[3] = !held || lease.highest_ms <= 0;
  nulls[5] = last.renewed_ms == 0;
  nulls[7] = nulls[8] = last.contact_ms == 0;
  nulls[10] = last.message[0] == '\0';
  tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
  return Datum{0};
}

}  // namespace snowflake::pg
