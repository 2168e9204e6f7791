#include "pg/refuse/log_messages.hpp"

#include "core/clock.hpp"
#include "pg/server/settings.hpp"
#include "pg/server/text.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

// The statement that happened to notice is not to blame, and may hold what is nobody's business.
int hide_caller() {
  errhidestmt(true);
  errhidecontext(true);
  return 0;
}

const char* database_name() {
  const char* name = get_database_name(MyDatabaseId);
  return name == nullptr ? "?" : name;
}

struct RefusalText {
  const char* what;
  const char* hint;
};

RefusalText text_of(Cause cause) {
  switch (cause) {
    case Cause::clock_behind:
      return {"the clock is behind the ids of a shard",
              "Check the time synchronization; minting resumes by itself when the clock has caught "
              "up."};
    case Cause::clock_jumped:
      return {"the clock jumped ahead",
              "Correct the clock, or confirm it with SELECT snowflake.accept_clock()."};
    case Cause::clock_before_epoch:
      return {"the clock is before the epoch", "Correct the clock."};
    case Cause::waited_too_long:
      return {"a shard is asked for more ids than it has",
              "Spread the load over more shards, or raise \"snowflake.max_wait\"."};
    case Cause::mark_ahead:
      return {"the clock is behind the high-water mark",
              "Check the time synchronization; if it is the mark that is wrong, see the runbook in "
              "doc/monitoring.md."};
    case Cause::mark_lost:
      return {
          "the high-water mark is lost",
          "Set it, with SELECT snowflake.set_mark(...), to a time that is later than every id of "
          "this database."};
    case Cause::seal:
      return {"the layout of this database and the settings disagree",
              "SELECT reason, advice FROM snowflake.health says more."};
    case Cause::not_owned:
      return {"a shard is asked for that this server does not own",
              "Connect where the shard is owned, or correct \"snowflake.owned_shards\"."};
    case Cause::id_ahead:
      return {"an id is to be passed that lies too far ahead of the clock",
              "Compare the clocks of the servers."};
    case Cause::exhausted:
      return {"the layout is exhausted",
              "Move the database to a layout with more time bits or a later epoch."};
    case Cause::lease:
      return {"there is no lease of a region",
              "The view snowflake.lease says what the control database last said."};
    case Cause::read_only:
      return {"the transaction or the server is read-only", "Connect to the primary server."};
    case Cause::mark_unsafe:
      return {"the high-water mark would be lost with a crash or a rollback",
              "See in the error's hint what to do with sequence snowflake.high_water."};
    case Cause::too_many_databases:
      return {"too many databases use snowflake",
              "SELECT * FROM snowflake.databases says which; drop one, or raise "
              "\"snowflake.max_databases\"."};
    case Cause::commit_wait:
      return {"a commit cannot wait for the clock", "Check the time synchronization."};
  }
  return {"", ""};
}

}  // namespace

void log_refusals_begin(Cause cause, int64_t drift_us, int64_t mark_ms) {
  const RefusalText text = text_of(cause);
  const int64_t clock_ms = wall_clock_ms();
  const char* mark = mark_ms == 0 ? "not known yet" : kept_time_text(mark_ms);
  ereport(LOG_SERVER_ONLY,
          (errmsg("snowflake refuses calls in database \"%s\": %s", database_name(), text.what),
           errdetail("The clock says %s and has moved by %lld ms against the time since boot; the "
                     "high-water mark is %s.",
                     time_text(clock_ms), static_cast<long long>(drift_us / 1000), mark),
           errhint("%s", text.hint), hide_caller()));
}

void log_refusals_over(Cause cause, uint64_t refused, int64_t lasted_ms) {
  ereport(LOG_SERVER_ONLY,
          (errmsg("snowflake mints again in database \"%s\"; refusals have ended: %s",
                  database_name(), text_of(cause).what),
           errdetail_plural("%llu call was refused, since %s ago.",
                            "%llu calls were refused, since %s ago.",
                            static_cast<unsigned long>(refused),
                            static_cast<unsigned long long>(refused), span_text(lasted_ms)),
           hide_caller()));
}

void log_stepped_back(int64_t step_ms, uint64_t steps) {
  ereport(
      LOG_SERVER_ONLY,
      (errmsg("the clock was stepped back by %s", span_text(step_ms)),
       errdetail("That is more than \"snowflake.max_lead\" (%d ms): shards that have minted "
                 "wait, or are refused, until the clock has caught up. It was step back number "
                 "%llu since the server started; the clock says %s.",
                 max_lead_ms, static_cast<unsigned long long>(steps), time_text(wall_clock_ms())),
       errhint("Let the time synchronization slew the clock instead of stepping it."),
       hide_caller()));
}

void log_stepped_ahead(int64_t step_ms, uint64_t steps) {
  ereport(
      LOG_SERVER_ONLY,
      (errmsg("the clock was stepped ahead by %s", span_text(step_ms)),
       errdetail("Ids follow it, for that is less than \"snowflake.max_forward_jump\" (%d s): "
                 "should it be stepped back, shards that minted meanwhile wait for it. It was "
                 "step ahead number %llu since the server started; the clock says %s.",
                 max_forward_jump_s, static_cast<unsigned long long>(steps),
                 time_text(wall_clock_ms())),
       errhint("Check the time synchronization, if the clock was right before."), hide_caller()));
}

void log_caught_up(int64_t lasted_ms) {
  ereport(LOG_SERVER_ONLY, (errmsg("the clock has caught up after it was stepped back"),
                            errdetail("It was noticed %s ago; the clock says %s.",
                                      span_text(lasted_ms), time_text(wall_clock_ms())),
                            hide_caller()));
}

void log_jumped_ahead(int64_t drift_ms) {
  ereport(LOG_SERVER_ONLY,
          (errmsg("the clock jumped ahead by %s", span_text(drift_ms)),
           errdetail("It has moved %lld ms further than the time since boot; "
                     "\"snowflake.max_forward_jump\" is %d s. No mark is written, and soon "
                     "nothing is minted, until it is corrected or confirmed.",
                     static_cast<long long>(drift_ms), max_forward_jump_s),
           errhint("Correct the clock, or confirm it with SELECT snowflake.accept_clock()."),
           hide_caller()));
}

void log_jump_over(int64_t drift_ms, int64_t lasted_ms) {
  ereport(LOG_SERVER_ONLY,
          (errmsg("the clock's jump ahead is over"),
           errdetail("The clock has moved %lld ms against the time since boot by now; it was "
                     "noticed %s ago.",
                     static_cast<long long>(drift_ms), span_text(lasted_ms)),
           hide_caller()));
}

void log_clock_accepted(int64_t drift_ms) {
  ereport(LOG, (errmsg("snowflake accepts a clock that moved by %lld ms",
                       static_cast<long long>(drift_ms)),
                errdetail("The move is measured against the time since boot.")));
}

const char* clock_error_text(const ClockBounds& bounds) {
  const double error_ms = static_cast<double>(bounds.maximum_error_us) / 1000;
  if (!bounds.known) return "The kernel says nothing of the clock's error.";
  if (bounds.from_setting)
    return psprintf("\"snowflake.clock_error\" is %g ms, \"snowflake.max_clock_error\" is %g ms.",
                    clock_error_ms, max_clock_error_ms);
  if (error_ms <= max_clock_error_ms)
    return psprintf(
        "The kernel does not have it as synchronized; it knows of a maximum error of "
        "%.3f ms.",
        error_ms);
  return psprintf(
      "The kernel knows of a maximum error of %.3f ms; \"snowflake.max_clock_error\" is "
      "%g ms.",
      error_ms, max_clock_error_ms);
}

void log_unsynchronized(const ClockBounds& bounds) {
  ereport(LOG_SERVER_ONLY,
          (errmsg("snowflake mints under a clock that is not synchronized"),
           errdetail_internal("%s", clock_error_text(bounds)),
           errhint("Check the time synchronization, or say in \"snowflake.clock_error\" how wrong "
                   "the clock may be."),
           hide_caller()));
}

void log_synchronized(const ClockBounds& bounds, int64_t lasted_ms) {
  ereport(LOG_SERVER_ONLY,
          (errmsg("the clock is synchronized again"),
           errdetail("Its maximum error is %.3f ms; that it was not was noticed %s ago.",
                     static_cast<double>(bounds.maximum_error_us) / 1000, span_text(lasted_ms)),
           hide_caller()));
}

void log_slow_mark(int64_t took_ms) {
  ereport(
      LOG_SERVER_ONLY,
      (errmsg("a call waited %s for the high-water mark to be flushed", span_text(took_ms)),
       errdetail("The mark is written \"snowflake.reserve\" (%lld ms) ahead so that none has to "
                 "wait; the first call after an idle time does.",
                 static_cast<long long>(reserve_ticks * layout.tick_ms)),
       errhint("Check the disk that the WAL is on, or raise \"snowflake.reserve\"."),
       hide_caller()));
}

void log_end_is_near() {
  const int64_t end_ms = layout.ms_of_tick(layout.last_minted_tick() + 1);
  ereport(LOG_SERVER_ONLY,
          (errmsg("the ids of layout %s run out in %s", layout_bits_text(layout),
                  span_text(end_ms - wall_clock_ms())),
           errdetail("The layout ends at %s; nothing is minted from then on.", time_text(end_ms)),
           errhint("Move the database to a layout with more time bits or a later epoch."),
           hide_caller()));
}

}  // namespace snowflake::pg
