#include "pg/server/row.hpp"
#include "pg/memory/lease_state.hpp"
#include "pg/server/origin_settings.hpp"
#include "pg/memory/shared_state.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

SF_SQL_FUNCTION(lease) {
  require_shared_state();
  InitMaterializedSRF(fcinfo, 0);
  if (!reports_region()) return Datum{0};
  const LeaseView lease = lease_view();
  const LeaseReport last = lease_report();
  const bool held = lease.region != kNoRegion;
  const double length_ms = leased() ? static_cast<double>(lease_length_ms()) : 0;
  put_row(
      fcinfo,
      {
          {"fleet", Int64GetDatum(lease_fleet()), lease_fleet() == 0},
          {"region", Int32GetDatum(held ? lease.region : configured_region), !held && leased()},
          {"until", timestamp_datum(lease.until_ms), !held},
          {"published_until", timestamp_datum(lease.highest_ms), !held || lease.highest_ms <= 0},
          {"length_ms", Float8GetDatum(length_ms)},
          {"last_renewal", timestamp_datum(last.renewed_ms), last.renewed_ms == 0},
          {"missed_renewals", Int64GetDatum(last.missed)},
          {"last_contact", timestamp_datum(last.contact_ms), last.contact_ms == 0},
          {"clocks_apart_ms", Float8GetDatum(static_cast<double>(last.clocks_apart_ms)),
           last.contact_ms == 0},
          {"incarnation", Int64GetDatum(lease.incarnation)},
          {"conflict", last.conflict[0] == '\0' ? nullptr : last.conflict},
          {"last_message", last.message[0] == '\0' ? nullptr : last.message},
      });
  return Datum{0};
}

}  // namespace snowflake::pg
