#include "pg/errors/errors_clone.hpp"

#include "pg/errors/refusal.hpp"
#include "pg/server/text.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

// "files, disk, machine"
const char* what_moved(const Moved& moved) {
  return psprintf("%s%s%s%s%s", moved.files ? "files" : "",
                  moved.files && (moved.disk || moved.machine) ? ", " : "",
                  moved.disk ? "disk" : "", moved.disk && moved.machine ? ", " : "",
                  moved.machine ? "machine" : "");
}

const char* detail_of(const Moved& moved) {
  return psprintf(
      "These parts of the server changed since the last id was minted: %s. If this "
      "server is a copy and the original server still runs, both mint the same ids, and the "
      "original server cannot detect this.",
      what_moved(moved));
}

}  // namespace

void error_cloned(const Moved& moved) {
  refuse(Blocker::cloned, nullptr, detail_of(moved));
}

void warn_cloned(const Moved& moved) {
  const int level = NewGUCNestLevel();
  (void)set_config_option("client_min_messages", "error", PGC_USERSET, PGC_S_SESSION,
                          GUC_ACTION_SAVE, true, 0, false);
  ereport(
      WARNING,
      (errcode(ERRCODE_WARNING),
       errmsg("database \"%s\" was copied or moved after it minted its last ids", database_name()),
       errdetail_internal("%s", detail_of(moved)), errhint("%s", text_of(Blocker::cloned).hint),
       errhidestmt(true), errhidecontext(true)));
  AtEOXact_GUC(true, level);
}

void log_clone_accepted(const Moved& moved) {
  ereport(LOG,
          (errmsg("accept_clone() was called: database \"%s\" now mints on this server",
                  database_name()),
           moved.any()
               ? errdetail("These parts of the server changed since the last id was minted: %s.",
                           what_moved(moved))
               : errdetail("The last id of the database was also minted on this server.")));
}

}  // namespace snowflake::pg
