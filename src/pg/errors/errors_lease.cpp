#include "pg/errors/errors_lease.hpp"

#include "pg/errors/refusal.hpp"
#include "pg/server/settings.hpp"
#include "pg/server/text.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

void error_lease_settings(const char* detail, const char* hint) {
  ereport(ERROR,
          (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid lease settings of snowflake"),
           errdetail("%s", detail), errhint("%s", hint)));
}

void error_no_region(Blocker blocker, const char* said) {
  refuse(blocker, nullptr,
         psprintf(
             "The call waited %d ms (\"snowflake.max_wait\"). Last message of the lease worker: %s",
             max_wait_ms, said[0] == '\0' ? "none." : said));
}

void error_region_begins_later(int32_t region, int64_t begin_ms, int64_t clock_ms) {
  const char* begin = kept_time_text(begin_ms);
  refuse(Blocker::region_begins_later, nullptr,
         psprintf("Ids of region %d may be minted from %s on. The clock shows %s.", region, begin,
                  time_text(clock_ms)));
}

void error_lease_ended(const LeaseView& lease, int64_t id_ms, int64_t clock_ms, const char* said) {
  const char* until = kept_time_text(lease.until_ms);
  const char* id = kept_time_text(id_ms);
  refuse(Blocker::lease_ended, psprintf("%d", lease.region),
         psprintf("The lease covers ids before %s. The next id has the time %s. The clock shows "
                  "%s. Last message of the lease worker: %s",
                  until, id, time_text(clock_ms), said[0] == '\0' ? "none." : said));
}

void error_beyond_lease(int64_t ms, const LeaseView& lease) {
  const char* until = kept_time_text(lease.until_ms);
  refuse(Blocker::beyond_lease, nullptr,
         psprintf("The call requires ids with a time after %s. The lease of region %d ends at %s.",
                  time_text(ms), lease.region, until));
}

void error_fleet_left(int64_t fleet) {
  refuse(
      Blocker::fleet_left, nullptr,
      psprintf(
          "Sequence snowflake.fleet contains %lld, the number of a fleet (the servers of one lease "
          "server). \"snowflake.leased_regions\" is not set. Another server may hold leases of "
          "this fleet.",
          static_cast<long long>(fleet)));
}

void error_other_fleet(int64_t remembered, int64_t present) {
  refuse(Blocker::other_fleet, nullptr,
         psprintf("Sequence snowflake.fleet contains fleet number %lld. The lease server in "
                  "\"snowflake.lease_conninfo\" belongs to fleet number %lld.",
                  static_cast<long long>(remembered), static_cast<long long>(present)));
}

}  // namespace snowflake::pg
