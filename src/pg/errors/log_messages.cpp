#include "pg/errors/log_messages.hpp"

#include "core/clock.hpp"
#include "pg/errors/refusal.hpp"
#include "pg/server/settings.hpp"
#include "pg/server/text.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

// A log message about the server contains no SQL statement, because the statement did not cause the
// message and may contain private data.
int hide_caller() {
  errhidestmt(true);
  errhidecontext(true);
  return 0;
}

}  // namespace

void log_refusals_begin(Blocker blocker, int64_t drift_us, int64_t mark_ms) {
  const RefusalText& text = text_of(blocker);
  const int64_t clock_ms = wall_clock_ms();
  const char* mark = mark_ms == 0 ? "not known yet" : kept_time_text(mark_ms);
  ereport(LOG_SERVER_ONLY,
          (errmsg("snowflake refuses calls in database \"%s\": %s", database_name(),
                  text_of(text.cause).what),
           errdetail("The clock shows %s. Since the server started or the clock was accepted, the "
                     "clock was stepped by %lld ms in all. The high-water mark is %s.",
                     time_text(clock_ms), static_cast<long long>(drift_us / 1000), mark),
           errhint("%s", text.hint), hide_caller()));
}

void log_refusals_over(Cause cause, uint64_t refused, int64_t lasted_ms) {
  ereport(
      LOG_SERVER_ONLY,
      (errmsg("snowflake mints ids again in database \"%s\"; reason of the earlier refusals: %s",
              database_name(), text_of(cause).what),
       errdetail_plural("%llu call was refused in the last %s.",
                        "%llu calls were refused in the last %s.",
                        static_cast<unsigned long>(refused),
                        static_cast<unsigned long long>(refused), span_text(lasted_ms)),
       hide_caller()));
}

void log_same_ids(const char* other, uint32_t shard, const char* statement) {
  ereport(LOG_SERVER_ONLY,
          (errmsg("databases \"%s\" and \"%s\" of this server mint the same ids", database_name(),
                  other),
           errdetail("Both databases mint ids of shard %u in the same region.", shard),
           errhint("If the ids of the two databases must differ, run %s, and connect again.",
                   statement),
           hide_caller()));
}

void log_stepped_back(int64_t step_ms, uint64_t steps) {
  const char* const effect =
      step_ms > max_lead_ms
          ? psprintf(
                "This step of the clock is longer than \"snowflake.max_lead\" (%d ms). Calls "
                "for shards that have minted ids wait or fail until the clock has caught up.",
                max_lead_ms)
          : psprintf(
                "This step of the clock is not longer than \"snowflake.max_lead\" (%d ms). "
                "Minting continues, and new ids are ahead of the clock until the clock has "
                "caught up.",
                max_lead_ms);
  ereport(LOG_SERVER_ONLY,
          (errmsg("the clock was stepped back by %s", span_text(step_ms)),
           errdetail("%s Number of clock steps back since the server start: %llu. "
                     "The clock shows %s.",
                     effect, static_cast<unsigned long long>(steps), time_text(wall_clock_ms())),
           errhint("Configure the time synchronization to slew the clock, not to step it."),
           hide_caller()));
}

void log_stepped_ahead(int64_t step_ms, uint64_t steps) {
  ereport(LOG_SERVER_ONLY,
          (errmsg("the clock was stepped ahead by %s", span_text(step_ms)),
           errdetail("New ids follow the clock, because the step is less than "
                     "\"snowflake.max_forward_jump\" (%d s). If the clock is stepped back "
                     "later, shards that have minted ids wait for the clock. Number of clock steps "
                     "ahead since the server start: %llu. The clock shows %s.",
                     max_forward_jump_s, static_cast<unsigned long long>(steps),
                     time_text(wall_clock_ms())),
           errhint("If the clock was correct before the step, check the time synchronization."),
           hide_caller()));
}

void log_caught_up(int64_t lasted_ms) {
  ereport(LOG_SERVER_ONLY, (errmsg("the clock has caught up after it was stepped back"),
                            errdetail("The step of the clock was detected %s ago. The clock "
                                      "shows %s.",
                                      span_text(lasted_ms), time_text(wall_clock_ms())),
                            hide_caller()));
}

void log_jumped_ahead(int64_t drift_ms) {
  ereport(LOG_SERVER_ONLY, (errmsg("the clock jumped ahead by %s", span_text(drift_ms)),
                            errdetail("The jump is %lld ms long, but "
                                      "\"snowflake.max_forward_jump\" is %d s. Minting stops "
                                      "soon. To continue, an operator must correct or confirm "
                                      "the clock.",
                                      static_cast<long long>(drift_ms), max_forward_jump_s),
                            errhint("%s", text_of(Blocker::clock_jumped).hint), hide_caller()));
}

void log_jump_over(int64_t drift_ms, int64_t lasted_ms) {
  ereport(LOG_SERVER_ONLY, (errmsg("the clock is no longer ahead after its jump"),
                            errdetail("Since the server started or the clock was accepted, the "
                                      "clock was stepped by %lld ms in all. The jump ahead was "
                                      "detected %s ago.",
                                      static_cast<long long>(drift_ms), span_text(lasted_ms)),
                            hide_caller()));
}

void log_clock_accepted(int64_t drift_ms) {
  ereport(LOG, (errmsg("snowflake accepts that the clock moved by %lld ms",
                       static_cast<long long>(drift_ms)),
                errdetail("The movement of the clock was measured against the time since boot.")));
}

void log_clock_believed(int64_t drift_ms) {
  ereport(LOG_SERVER_ONLY,
          (errmsg("the clock was wrong when the server started, and is now accepted"),
           errdetail("When the server started, the clock was behind a high-water mark. The "
                     "clock has now reached this mark. Since the server started, the clock "
                     "was stepped by %lld ms in all. The clock shows %s.",
                     static_cast<long long>(drift_ms), time_text(wall_clock_ms())),
           hide_caller()));
}

const char* clock_error_text(const ClockBounds& bounds) {
  const double error_ms = static_cast<double>(bounds.maximum_error_us) / 1000;
  if (!bounds.known) return "The kernel does not report how inaccurate the clock can be.";
  if (bounds.from_setting)
    return psprintf("\"snowflake.clock_error\" is %g ms. \"snowflake.max_clock_error\" is %g ms.",
                    clock_error_ms, max_clock_error_ms);
  if (error_ms <= max_clock_error_ms)
    return psprintf(
        "The kernel reports the clock as not synchronized, with a maximum error of %.3f ms.",
        error_ms);
  return psprintf(
      "The kernel reports a maximum clock error of %.3f ms. \"snowflake.max_clock_error\" is %g "
      "ms.",
      error_ms, max_clock_error_ms);
}

void log_unsynchronized(const ClockBounds& bounds) {
  ereport(LOG_SERVER_ONLY,
          (errmsg("snowflake mints ids although the clock is not synchronized"),
           errdetail_internal("%s", clock_error_text(bounds)),
           errhint("%s", text_of(Blocker::clock_unsynchronized).hint), hide_caller()));
}

void log_synchronized(const ClockBounds& bounds, int64_t lasted_ms) {
  ereport(
      LOG_SERVER_ONLY,
      (errmsg("the clock is synchronized again"),
       errdetail(
           "The maximum error of the clock is %.3f ms. The clock was found unsynchronized %s ago.",
           static_cast<double>(bounds.maximum_error_us) / 1000, span_text(lasted_ms)),
       hide_caller()));
}

namespace {

const char* reason_of(CounterUse use, int64_t cost_ns) {
  switch (use) {
    case CounterUse::used:
      return psprintf("Reading the processor's counter takes %lld ns.",
                      static_cast<long long>(cost_ns));
    case CounterUse::unknown_source:
      return "The kernel's clock source is not one of the sources that use the processor's "
             "counter.";
    case CounterUse::not_constant:
      return "The processor does not have both flags constant_tsc and nonstop_tsc.";
    case CounterUse::slow:
      break;
  }
  if (cost_ns == INT64_MAX) return "The processor's counter does not advance.";
  return psprintf("Reading the processor's counter takes %lld ns. The limit is %lld ns.",
                  static_cast<long long>(cost_ns), static_cast<long long>(kMostCounterNs));
}

}  // namespace

void log_counter(const char* source, CounterUse use, int64_t cost_ns) {
  const bool used = use == CounterUse::used && use_tsc;
  const char* const reason = use == CounterUse::used && !use_tsc ? "\"snowflake.use_tsc\" is off."
                                                                 : reason_of(use, cost_ns);
  ereport(LOG_SERVER_ONLY,
          (used ? errmsg("clock source \"%s\": snowflake uses the processor's counter between "
                         "readings of the clock",
                         source)
                : errmsg("clock source \"%s\": snowflake reads the clock for every id", source),
           errdetail_internal("%s", reason), hide_caller()));
}

void log_first_mark(int64_t mark_ms, int64_t clock_ms) {
  const int64_t past_ms = clock_ms - mark_ms;
  if (past_ms < 0) return;
  const char* mark = kept_time_text(mark_ms);
  ereport(LOG_SERVER_ONLY,
          (errmsg("the first ids since the server start in database \"%s\" are %s after the "
                  "high-water mark",
                  database_name(), span_text(past_ms)),
           errdetail("The high-water mark is %s. The clock shows %s.", mark, time_text(clock_ms)),
           past_ms > int64_t{max_forward_jump_s} * 1000
               ? errhint("If this database minted ids in the last %s, correct the clock.",
                         span_text(past_ms))
               : 0,
           hide_caller()));
}

void log_slow_mark(int64_t took_ms) {
  ereport(
      LOG_SERVER_ONLY,
      (errmsg("a call waited %s for the high-water mark to be flushed", span_text(took_ms)),
       errdetail("Normally, only the first call after an idle time waits, because the high-water "
                 "mark is written %lld ms (\"snowflake.reserve\") ahead of the ids.",
                 static_cast<long long>(reserve_ticks * layout.tick_ms)),
       errhint("Check the disk that stores pg_wal, or raise \"snowflake.reserve\"."),
       hide_caller()));
}

void log_end_is_near() {
  const int64_t end_ms = layout.ms_of_tick(layout.last_minted_tick() + 1);
  ereport(LOG_SERVER_ONLY, (errmsg("the ids of layout %s run out in %s", layout_bits_text(layout),
                                   span_text(end_ms - wall_clock_ms())),
                            errdetail("Minting stops at %s.", time_text(end_ms)),
                            errhint("%s", text_of(Blocker::layout_exhausted).hint), hide_caller()));
}

}  // namespace snowflake::pg
