#include "pg/errors/errors_clock_error.hpp"

#include "pg/errors/log_messages.hpp"
#include "pg/errors/refusal.hpp"
#include "pg/server/settings.hpp"
#include "pg/server/text.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

void error_clock_unsynchronized(const ClockBounds& bounds) {
  const RefusalText& text = text_of(Blocker::clock_unsynchronized);
  ereport(ERROR, (errcode(text.sqlstate), errmsg_internal("%s", text.message),
                  errdetail_internal("%s", clock_error_text(bounds)), errhint("%s", text.hint)));
}

void error_mint_unsynchronized(const ClockBounds& bounds, int64_t waited_ms) {
  refuse(Blocker::unsynchronized, nullptr,
         psprintf("%s \"snowflake.unsynchronized\" is %s.%s", clock_error_text(bounds),
                  GetConfigOption("snowflake.unsynchronized", false, false),
                  waited_ms == 0 ? "" : psprintf(" The call waited %s.", span_text(waited_ms))));
}

void error_commit_unsynchronized(const ClockBounds& bounds) {
  refuse(Blocker::clock_unsynchronized, nullptr, clock_error_text(bounds));
}

void error_commit_wait(int64_t id_ms, int64_t clock_ms, int64_t error_us, int64_t needed_ms,
                       int64_t waited_ms) {
  const char* id = kept_time_text(id_ms);
  refuse(Blocker::commit_wait, nullptr,
         psprintf("The last id of the transaction has the time %s. The clock shows %s and may be "
                  "wrong by %.3f ms; clocks of other servers may be wrong by %g ms. The commit "
                  "waited %s and would wait %s more. \"snowflake.max_wait\" is %d ms.",
                  id, time_text(clock_ms), static_cast<double>(error_us) / 1000, max_clock_error_ms,
                  span_text(waited_ms), span_text(needed_ms), max_wait_ms));
}

}  // namespace snowflake::pg
