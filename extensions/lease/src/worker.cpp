
#include "worker.hpp"

#include <cinttypes>

#include "conversation.hpp"
#include "messages.hpp"

namespace snowflake::lease {

constinit Schedule schedule{};

namespace {

constexpr int64_t kShortestTimeoutMs = 3'000;
constexpr int64_t kLongestTimeoutMs = 10'000;
constexpr int kGiveBackMs = 3'000;  // a longer timeout would delay a fast shutdown
constexpr int64_t kShortestPauseMs = 250;
constexpr int64_t kLongestPauseMs = 10'000;

constexpr int64_t kReportMs = 10'000;

constexpr char kWaysOut[] = "The view snowflake_fleet.health of the lease server shows what to do";

struct State {
  LeaseNonce nonce;
  bool wide_apart;          // the clocks of this server and the lease server differ too much
  int64_t asked_offset_us;  // the clock offset before the last request
};
constinit State state{};

int64_t draw() {
  int64_t number = 0;
  if (!pg_strong_random(&number, sizeof(number)))
    ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not generate a random number")));
  return (number & INT64_MAX) | 1;
}

void renewed(int64_t at_ms) {
  report.renewed_ms = at_ms;
  report.missed = 0;
}

void due_in(int64_t ms) {
  schedule.due_us = schedule.asked_us + ms * 1000;
}

void back_off() {
  ++report.missed;
  port->report(report);
  due_in(schedule.pause_ms);
  schedule.pause_ms = std::min(schedule.pause_ms * 2, kLongestPauseMs);
}

LeaseRequest next_request() {
  const LeaseView mine = port->view();
  LeaseRequest request{};
  request.call = mine.region == kNoRegion ? LeaseCall::acquire : LeaseCall::renew;
  if (port->static_region != nullptr) request.call = LeaseCall::report;
  request.incarnation = mine.incarnation;
  request.term = mine.term;
  request.newest = mine.newest;
  request.nonce = state.nonce.next;
  request.acked = state.nonce.acked;
  state.asked_offset_us = clock_offset_us();
  request.clock_ms = wall_clock_ms();
  request.length_ms = port->lease_ms + *port->max_lead_ms;
  request.age_ms = port->age_ms();
  request.region = port->static_region != nullptr ? *port->static_region : mine.region;
  request.floor_ms = mine.floor_ms;
  request.until_ms = mine.until_ms;
  return request;
}

void compare_clocks(const Reply& reply) {
  const int64_t apart = clocks_apart(reply.sent_ms, reply.answer.clock_ms, reply.received_ms);
  report.contact_ms = reply.received_ms;
  report.clocks_apart_ms = apart;
  const bool wide = std::abs(apart) > std::max(*port->max_lead_ms, 1);
  if (wide && !state.wide_apart)
    ereport(WARNING,
            (errmsg("snowflake: the clocks of this server and its lease server differ"),
             errdetail("The clock of this server is %" PRId64
                       " ms %s. The setting \"snowflake.max_lead\" is %d ms.",
                       std::abs(apart), apart > 0 ? "ahead" : "behind", *port->max_lead_ms),
             errhint("Check the time synchronization of both servers.")));
  state.wide_apart = wide;
}

// Records whether another server mints ids in the region of this server. Minting continues although
// two servers use the same region.
void note_conflict(const char* text) {
  const bool news = text[0] != '\0' && report.conflict[0] == '\0';
  strlcpy(report.conflict, text, sizeof(report.conflict));
  port->report(report);
  if (!news) return;
  ereport(WARNING,
          (errmsg("snowflake: another server mints in the same region"), errdetail("%s", text),
           errhint("Set \"snowflake.region\" or \"snowflake.leased_regions\" to different regions "
                   "on each server.")));
}

void receive_registration(const Reply& reply) {
  compare_clocks(reply);
  const bool registered = reply.answer.status == AnswerStatus::registered;
  note_conflict(registered ? reply.detail : "");
  char text[640];
  if (registered) {
    snprintf(text, sizeof(text), "reported region %d to the lease server", *port->static_region);
    renewed(reply.received_ms);
    log_event(DEBUG1, text);
    stay();
    schedule.pause_ms = kShortestPauseMs;
    due_in(kReportMs);
    return;
  }
  snprintf(text, sizeof(text), "the lease server does not register this server: %s", reply.detail);
  log_failure(text);
  retry_later();
}

void receive(const Reply& reply) {
  if (port->static_region != nullptr) {
    receive_registration(reply);
    return;
  }
  const LeaseAnswer& answer = reply.answer;
  const LeaseView mine = port->view();
  char text[1024];
  compare_clocks(reply);
  state.nonce.answered(answer.status, draw());
  switch (read_answer(mine, false, answer, reply.sent_ms, reply.received_ms, port->skew_ms)) {
    case LeaseEvent::taken:
      port->take(answer, reply.fleet, state.asked_offset_us);
      renewed(reply.received_ms);
      snprintf(text, sizeof(text), "leased region %d of fleet %" PRId64 "%s%s%s", answer.region,
               reply.fleet, answer.floor_ms == 0 ? "" : ", ids from ",
               answer.floor_ms == 0 ? "" : time_text(answer.floor_ms),
               answer.floor_ms == 0 ? "" : " on");
      log_event(LOG, text);
      break;
    case LeaseEvent::extended:
      port->extend(answer, state.asked_offset_us);
      renewed(reply.received_ms);
      snprintf(text, sizeof(text), "renewed the lease of region %d", answer.region);
      log_event(DEBUG1, text);
      break;
    case LeaseEvent::lost:
      port->begin(draw(), answer);
      snprintf(text, sizeof(text), "lost region %d: %s", mine.region, reply.detail);
      log_event(WARNING, text);
      due_in(0);
      return;
    case LeaseEvent::ask_again:
      port->record(answer);
      due_in(0);
      return;
    case LeaseEvent::full:
      port->record(answer);
      snprintf(text, sizeof(text), "no region of this server is free before %s. %s",
               time_text(answer.until_ms), reply.detail);
      log_failure(text);
      back_off();
      return;
    case LeaseEvent::apart:
      snprintf(text, sizeof(text),
               "refused to lease: this server's clock is %" PRId64
               " ms %s the lease server's clock, and \"snowflake.max_skew\" is %" PRId64 " ms",
               std::abs(report.clocks_apart_ms), report.clocks_apart_ms > 0 ? "ahead of" : "behind",
               port->skew_ms);
      log_failure(text);
      retry_later();
      return;
    case LeaseEvent::refused:
      if (answer.status == AnswerStatus::halted)
        snprintf(text, sizeof(text), "the lease server at %s waits for an operator: %s %s",
                 asked_host(), reply.detail, kWaysOut);
      else
        snprintf(text, sizeof(text), "the lease server refused to lease: %s", reply.detail);
      log_failure(text);
      retry_later();
      return;
    default:
      log_failure("the lease server sent an answer that does not belong to the last request");
      retry_later();
      return;
  }
  note_conflict(reply.detail);
  stay();
  schedule.pause_ms = kShortestPauseMs;
  due_in(std::max(renew_after(answer.until_ms - reply.sent_ms), kShortestPauseMs));
}

// Returns the timeout of a request to one host. If leases are short, the timeout of a request is
// shorter, so that the lease worker can try several hosts before the lease ends.
int timeout_ms() {
  return static_cast<int>(std::clamp(port->lease_ms / 3, kShortestTimeoutMs, kLongestTimeoutMs));
}

}  // namespace

void begin_exchanges() {
  state.nonce = {draw(), 0};
  schedule.pause_ms = kShortestPauseMs;
}

void retry_later() {
  const bool others = leave();
  back_off();
  if (others) due_in(0);
}

void exchange() {
  static Reply reply;
  schedule.asked_us = monotonic_us();
  converse(*port, next_request(), timeout_ms(), true, &reply);
  if (reply.answered) {
    receive(reply);
    return;
  }
  if (ShutdownRequestPending) return;
  log_failure(reply.detail);
  retry_later();
}

void give_back() {
  static Reply reply;
  if (port->view().region == kNoRegion) return;
  if (is_own_server()) {
    // If this server is also the lease server, the lease worker cannot give the region back. A
    // server that is shutting down accepts no connection.
    const LeaseView mine = port->view();
    ereport(LOG, (errmsg("snowflake: region %d is not given back, because the lease server is "
                         "this server, which is stopping",
                         mine.region),
                  errdetail("The region is free when its lease has ended, at %s.",
                            time_text(mine.until_ms))));
    return;
  }
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
    if (!leave()) pg_usleep(200'000);
  }
  if (reply.answered && reply.answer.status == AnswerStatus::given_back)
    ereport(LOG, (errmsg("snowflake: gave region %d back", mine.region)));
  else
    ereport(LOG, (errmsg("snowflake: could not give region %d back: %s", mine.region, reply.detail),
                  errdetail("The region is free when its lease has ended, at %s.",
                            time_text(mine.until_ms))));
}

}  // namespace snowflake::lease
