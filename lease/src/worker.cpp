// The worker that leases: acquires a region when the server starts, renews it at a third of its
// time, gives it back when the server stops. Everything that it decides is core/lease_memory.hpp's.

#include <cinttypes>
#include <cstring>

#include "conversation.hpp"

namespace snowflake::lease {

namespace {

constinit const pg::LeasePort* port = nullptr;

constexpr int kTimeoutMs = 10'000;
constexpr int kGiveBackMs = 3'000;  // a fast shutdown waits for it
constexpr int64_t kShortestPauseMs = 250;
constexpr int64_t kLongestPauseMs = 10'000;
constexpr int64_t kUrgentPauseMs = 1'000;  // while sessions wait

struct State {
  LeaseNonce nonce;
  int64_t asked_us;  // when the last exchange began
  int64_t due_us;
  int64_t pause_ms;  // before the next attempt after a failure
  bool wide_apart;   // a warning about the clocks has been given
  pg::LeaseReport report;
  bool unwell;        // the last thing said was a warning
  int64_t warned_us;  // when the log had the last one
  char warned[512];   // and what it was
};
constinit State state{};

constexpr int64_t kWarningsApartUs = 60'000'000;

int64_t draw() {
  int64_t number = 0;
  if (!pg_strong_random(&number, sizeof(number)))
    ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not draw a random number")));
  return (number & INT64_MAX) | 1;
}

// In UTC, whatever the log's time zone: two servers' logs are compared.
const char* time_text(int64_t ms) {
  static char text[64];
  const auto seconds = static_cast<pg_time_t>(ms / 1000);
  pg_strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", pg_gmtime(&seconds));
  return text;
}

// For the view and, where it is news, for the log.
void say(int level, const char* text) {
  const bool news = strcmp(state.report.message, text) != 0;
  strlcpy(state.report.message, text, sizeof(state.report.message));
  port->report(state.report);
  state.unwell = false;
  if (news) ereport(level, (errmsg("snowflake: %s", text)));
}

// What goes wrong goes wrong again with every attempt, in words that differ by a number or a host:
// the log has the first, and from then on one a minute where there is something new to say.
void complain(const char* text) {
  strlcpy(state.report.message, text, sizeof(state.report.message));
  port->report(state.report);
  const int64_t now_us = monotonic_us();
  const bool first = !state.unwell;
  state.unwell = true;
  if (strcmp(state.warned, text) == 0 && !first) return;
  if (!first && now_us - state.warned_us < kWarningsApartUs) return;
  state.warned_us = now_us;
  strlcpy(state.warned, text, sizeof(state.warned));
  ereport(WARNING, (errmsg("snowflake: %s", text)));
}

void renewed(int64_t at_ms) {
  state.report.renewed_ms = at_ms;
  state.report.missed = 0;
}

void due_in(int64_t ms) {
  state.due_us = state.asked_us + ms * 1000;
}

void try_again_later() {
  ++state.report.missed;
  port->report(state.report);
  due_in(state.pause_ms);
  state.pause_ms = std::min(state.pause_ms * 2, kLongestPauseMs);
}

int64_t wanted_ms() {
  return grant_length(port->age_ms(), port->lease_ms);
}

LeaseRequest next_request() {
  const LeaseView mine = port->view();
  LeaseRequest request{};
  request.call = mine.region == kNoRegion ? LeaseCall::acquire : LeaseCall::renew;
  request.incarnation = mine.incarnation;
  request.term = mine.term;
  request.newest = mine.newest;
  request.nonce = state.nonce.next;
  request.acked = state.nonce.acked;
  request.clock_ms = wall_clock_ms();
  request.length_ms = wanted_ms() + *port->max_lead_ms;
  request.region = mine.region;
  return request;
}

void compare_clocks(const Reply& reply) {
  const int64_t apart = clocks_apart(reply.sent_ms, reply.answer.clock_ms, reply.received_ms);
  state.report.contact_ms = reply.received_ms;
  state.report.clocks_apart_ms = apart;
  const bool wide = std::abs(apart) > std::max(*port->max_lead_ms, 1);
  if (wide && !state.wide_apart)
    ereport(WARNING,
            (errmsg("snowflake: the clocks of this server and its control database are apart"),
             errdetail("This server's is %" PRId64 " ms %s, \"snowflake.max_lead\" is %d ms.",
                       std::abs(apart), apart > 0 ? "ahead" : "behind", *port->max_lead_ms),
             errhint("Check the time synchronization of both.")));
  state.wide_apart = wide;
}

void hear(const Reply& reply) {
  const LeaseAnswer& answer = reply.answer;
  const LeaseView mine = port->view();
  char text[512];
  compare_clocks(reply);
  state.nonce.answered(answer.status, draw());
  switch (read_answer(mine, false, answer, reply.sent_ms, reply.received_ms, port->skew_ms)) {
    case LeaseNews::taken:
      port->take(answer, reply.fleet);
      renewed(reply.received_ms);
      snprintf(text, sizeof(text), "leased region %d of fleet %" PRId64 ", ids from %s on",
               answer.region, reply.fleet, time_text(answer.floor_ms));
      say(LOG, text);
      break;
    case LeaseNews::extended:
      port->extend(answer);
      renewed(reply.received_ms);
      snprintf(text, sizeof(text), "renewed the lease of region %d", answer.region);
      // Of interest where the log has told of trouble: that it is over.
      say(state.unwell ? LOG : DEBUG1, text);
      break;
    case LeaseNews::lost:
      port->begin(draw(), answer.term, answer.number);
      snprintf(text, sizeof(text), "lost region %d: %s", mine.region, reply.said);
      say(WARNING, text);
      due_in(0);
      return;
    case LeaseNews::full:
      port->note(answer.term, answer.number);
      snprintf(text, sizeof(text), "no region is free before %s. %s", time_text(answer.until_ms),
               reply.said);
      complain(text);
      try_again_later();
      return;
    case LeaseNews::apart:
      snprintf(text, sizeof(text),
               "refused to lease: this server's clock is %" PRId64
               " ms %s the control database's, \"snowflake.max_skew\" is %" PRId64 " ms",
               std::abs(state.report.clocks_apart_ms),
               state.report.clocks_apart_ms > 0 ? "ahead of" : "behind", port->skew_ms);
      complain(text);
      try_again_later();
      return;
    case LeaseNews::refused:
      snprintf(text, sizeof(text), "%s: %s",
               answer.status == AnswerStatus::halted
                   ? "the control database waits for snowflake_fleet.recovered()"
                   : "the control database refused to lease",
               reply.said);
      complain(text);
      try_again_later();
      return;
    default:
      complain("an answer of the control database was out of order");
      try_again_later();
      return;
  }
  state.pause_ms = kShortestPauseMs;
  // The fleet may grant less than was asked for.
  const int64_t left_ms = answer.until_ms - reply.sent_ms - *port->max_lead_ms;
  due_in(std::max(renew_after(std::min(wanted_ms(), left_ms)), kShortestPauseMs));
}

void exchange() {
  static Reply reply;
  state.asked_us = monotonic_us();
  converse(*port, next_request(), kTimeoutMs, true, &reply);
  if (reply.answered) {
    hear(reply);
    return;
  }
  if (ShutdownRequestPending) return;
  complain(reply.said);
  try_again_later();
}

// The limits are withdrawn and the region is forgotten before anything is sent.
void give_back() {
  static Reply reply;
  if (port->view().region == kNoRegion) return;
  const LeaseView mine = port->forget();
  LeaseRequest request{};
  request.call = LeaseCall::give_back;
  request.incarnation = mine.incarnation;
  request.term = mine.term;
  request.newest = mine.newest;
  request.region = mine.region;
  request.grant = mine.grant;
  request.highest_ms = std::max<int64_t>(0, mine.highest_ms);
  const int64_t end_us = monotonic_us() + int64_t{kGiveBackMs} * 1000;
  for (int64_t left_us = end_us - monotonic_us(); left_us > 0; left_us = end_us - monotonic_us()) {
    request.clock_ms = wall_clock_ms();
    converse(*port, request, static_cast<int>(left_us / 1000) + 1, false, &reply);
    if (reply.answered) break;
    pg_usleep(200'000);
  }
  if (reply.answered && reply.answer.status == AnswerStatus::given_back)
    ereport(LOG, (errmsg("snowflake: gave region %d back", mine.region)));
  else
    ereport(LOG,
            (errmsg("snowflake: could not give region %d back: %s", mine.region, reply.said),
             errdetail("It is free when its lease has ended, at %s.", time_text(mine.until_ms))));
}

void work() {
  state.nonce = {draw(), 0};
  state.pause_ms = kShortestPauseMs;
  port->serve();
  for (;;) {
    CHECK_FOR_INTERRUPTS();
    if (ShutdownRequestPending) {
      give_back();
      return;
    }
    if (ConfigReloadPending) {
      ConfigReloadPending = false;
      ProcessConfigFile(PGC_SIGHUP);
    }
    const int64_t now_us = monotonic_us();
    // Sessions that wait for time ask for it now, but not in a hurry that would harm.
    if (port->is_urgent())
      state.due_us =
          std::min(state.due_us, state.asked_us + std::min(state.pause_ms, kUrgentPauseMs) * 1000);
    if (now_us >= state.due_us) {
      exchange();
      continue;
    }
    (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
                    static_cast<long>((state.due_us - now_us) / 1000 + 1), PG_WAIT_EXTENSION);
    ResetLatch(MyLatch);
  }
}

const pg::LeasePort* find_port() {
  return static_cast<const pg::LeasePort*>(*find_rendezvous_variable(pg::kLeasePortName));
}

// Stops the start of the server where the connection string is wrong, or would show a password.
void check_conninfo() {
  char* why = nullptr;
  PQconninfoOption* const options = PQconninfoParse(port->conninfo, &why);
  if (options == nullptr)
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("invalid value for parameter \"snowflake.fleet\""),
                    errdetail("%s", why == nullptr ? "Out of memory." : why),
                    errhint("Write a connection string of libpq's.")));
  bool password = false;
  for (const PQconninfoOption* option = options; option->keyword != nullptr; ++option)
    password |= strstr(option->keyword, "password") != nullptr && option->val != nullptr &&
                option->val[0] != '\0';
  PQconninfoFree(options);
  if (password)
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("\"snowflake.fleet\" contains a password"),
                    errdetail("Backups and copies of the configuration would carry it."),
                    errhint("Use \"passfile\", a certificate, or another method.")));
}

}  // namespace

}  // namespace snowflake::lease

extern "C" {

PG_MODULE_MAGIC;

PGDLLEXPORT void snowflake_lease_install(void);
PGDLLEXPORT void snowflake_lease_main(Datum);

// Called by the generator's library, at server start.
void snowflake_lease_install(void) {
  using namespace snowflake::lease;
  port = find_port();
  if (port == nullptr || strcmp(port->version, SNOWFLAKE_VERSION) != 0)
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("the libraries snowflake and snowflake_lease are of different versions"),
                    errdetail("They have %s and %s.", port == nullptr ? "none" : port->version,
                              SNOWFLAKE_VERSION),
                    errhint("Install both from one source.")));
  check_conninfo();
  BackgroundWorker worker{};
  strlcpy(worker.bgw_name, "snowflake lease", sizeof(worker.bgw_name));
  strlcpy(worker.bgw_type, "snowflake lease", sizeof(worker.bgw_type));
  strlcpy(worker.bgw_library_name, "snowflake_lease", sizeof(worker.bgw_library_name));
  strlcpy(worker.bgw_function_name, "snowflake_lease_main", sizeof(worker.bgw_function_name));
  worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
  worker.bgw_start_time = BgWorkerStart_RecoveryFinished;  // nothing is leased during recovery
  worker.bgw_restart_time = 1;
  RegisterBackgroundWorker(&worker);
}

void snowflake_lease_main(Datum) {
  using namespace snowflake::lease;
  pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
  pqsignal(SIGHUP, SignalHandlerForConfigReload);
  BackgroundWorkerUnblockSignals();
  // To no database: so that pg_stat_activity shows it and an operator can end it.
  BackgroundWorkerInitializeConnection(nullptr, nullptr, 0);
  pgstat_report_activity(STATE_IDLE, nullptr);
  port = find_port();
  work();
  // Not 0: an operator may have ended it, and then the postmaster starts another.
  proc_exit(1);
}

}  // extern "C"
