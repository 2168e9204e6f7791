#include "pg/refuse/errors_clock_error.hpp"

#include "pg/refuse/log_messages.hpp"
#include "pg/server/settings.hpp"
#include "pg/server/text.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

void error_clock_unsynchronized(const ClockBounds& bounds) {
  ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                  errmsg("the clock is not synchronized"),
                  errdetail_internal("%s", clock_error_text(bounds)),
                  errhint("Check the time synchronization, or say in \"snowflake.clock_error\" how "
                          "wrong the clock may be.")));
}

void error_commit_wait(int64_t id_ms, int64_t clock_ms, int64_t error_us, int64_t needed_ms,
                       int64_t waited_ms) {
  const char* id = kept_time_text(id_ms);
  ereport(ERROR,
          (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
           errmsg("the commit would wait too long for the clock"),
           errdetail("The transaction's last id is of %s, the clock says %s and may be wrong by "
                     "%.3f ms, other servers' by %g ms: after %s the commit would wait %s more, "
                     "and \"snowflake.max_wait\" is %d ms.",
                     id, time_text(clock_ms), static_cast<double>(error_us) / 1000,
                     max_clock_error_ms, span_text(waited_ms), span_text(needed_ms), max_wait_ms),
           errhint("Raise \"snowflake.max_wait\", or lower \"snowflake.max_clock_error\" on all "
                   "servers if their clocks are better than that.")));
}

}  // namespace snowflake::pg
