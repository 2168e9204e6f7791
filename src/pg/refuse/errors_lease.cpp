#include "pg/refuse/errors_lease.hpp"

#include "pg/server/settings.hpp"
#include "pg/server/text.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

void error_fleet_settings(const char* detail, const char* hint) {
  ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                  errmsg("settings of snowflake's leases contradict each other"),
                  errdetail("%s", detail), errhint("%s", hint)));
}

void error_no_region(const char* said) {
  ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                  errmsg("this server has no region to mint in"),
                  errdetail("\"snowflake.max_wait\" is %d ms. Last said: %s", max_wait_ms,
                            said[0] == '\0' ? "nothing yet." : said),
                  errhint("Check the control database that \"snowflake.fleet\" names; the view "
                          "snowflake.lease has more.")));
}

void error_region_begins_later(int32_t region, int64_t begin_ms, int64_t clock_ms) {
  const char* begin = kept_time_text(begin_ms);
  ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                  errmsg("the ids of the leased region begin later"),
                  errdetail("Region %d may be minted in from %s on, the clock says %s.", region,
                            begin, time_text(clock_ms)),
                  errhint("Check the time synchronization; after a recovery of the control "
                          "database, wait.")));
}

void error_lease_ended(const LeaseView& lease, int64_t id_ms, int64_t clock_ms, const char* said) {
  const char* until = kept_time_text(lease.until_ms);
  const char* id = kept_time_text(id_ms);
  ereport(ERROR,
          (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
           errmsg("the lease of region %d has ended", lease.region),
           errdetail("It covers ids before %s, the next id is of %s, the clock says %s. Last said: "
                     "%s",
                     until, id, time_text(clock_ms), said[0] == '\0' ? "nothing yet." : said),
           errhint("Check the control database that \"snowflake.fleet\" names; the view "
                   "snowflake.lease has more.")));
}

void error_beyond_lease(int64_t ms, const LeaseView& lease) {
  const char* until = kept_time_text(lease.until_ms);
  ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                  errmsg("the id is beyond the lease of this server's region"),
                  errdetail("It asks for ids after %s, region %d is leased until %s.",
                            time_text(ms), lease.region, until),
                  errhint("Observe it again when the lease has been renewed.")));
}

void error_fleet_left(int64_t fleet) {
  ereport(ERROR,
          (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
           errmsg("the ids of this database were minted under leases, and this server leases "
                  "nothing"),
           errdetail("Sequence snowflake.fleet says fleet %lld, and \"snowflake.fleet\" is not "
                     "set. Another server may hold the leases.",
                     static_cast<long long>(fleet)),
           errhint("Set \"snowflake.fleet\" and restart the server; if the database has left the "
                   "fleet for good, set the sequence to 0.")));
}

void error_other_fleet(int64_t remembered, int64_t present) {
  ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                  errmsg("this database belongs to another fleet"),
                  errdetail("Sequence snowflake.fleet says fleet %lld, the control database that "
                            "\"snowflake.fleet\" names is that of fleet %lld.",
                            static_cast<long long>(remembered), static_cast<long long>(present)),
                  errhint("Correct \"snowflake.fleet\" and restart the server.")));
}

}  // namespace snowflake::pg
