#include "conversation.hpp"

#include <cinttypes>
#include <cstdlib>
#include <cstring>

namespace snowflake::lease {

namespace {

constexpr char kQuery[] =
    "SELECT status, fleet, term, number, region, grant_number, floor_ms, until_ms, clock_ms, "
    "detail "
    "FROM snowflake_fleet.ask($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12::int[], $13::int, "
    "$14, $15, $16, $17)";
constexpr const char* kCalls[] = {"acquire", "renew", "give_back", "report"};
constexpr const char* kStatuses[] = {"granted",     "given_back", "lost",  "full",      "halted",
                                     "clock_ahead", "term_over",  "taken", "registered"};
constexpr int kMostParameters = 17;

struct Parameters {
  int count;
  char text[kMostParameters][24];
  const char* value[kMostParameters];

  void add(int64_t number) {
    snprintf(text[count], sizeof(text[count]), "%" PRId64, number);
    add(text[count]);
  }
  void add(const char* words) { value[count++] = words; }
};

void add_all(const pg::LeasePort& port, const LeaseRequest& request, Parameters* parameters) {
  parameters->count = 0;
  parameters->add(kCalls[static_cast<int>(request.call)]);
  parameters->add(port.fleet());
  parameters->add(request.incarnation);
  parameters->add(request.term);
  parameters->add(request.newest);
  parameters->add(request.nonce);
  parameters->add(request.acked);
  parameters->add(request.clock_ms);
  parameters->add(request.length_ms);
  parameters->add(request.age_ms);
  parameters->add(port.seal);
  parameters->add(port.regions);
  parameters->add(request.region);
  parameters->add(request.floor_ms);
  parameters->add(request.until_ms);
  parameters->add(request.grant);
  parameters->add(request.highest_ms);
}

int64_t number(const Exchange& exchange, int column) {
  return strtoll(exchange.column[column], nullptr, 10);
}

bool read_status(const char* text, AnswerStatus* status) {
  for (size_t i = 0; i < sizeof(kStatuses) / sizeof(kStatuses[0]); ++i) {
    if (strcmp(text, kStatuses[i]) != 0) continue;
    *status = static_cast<AnswerStatus>(i);
    return true;
  }
  return false;
}

}  // namespace

void converse(const pg::LeasePort& port, const LeaseRequest& request, int timeout_ms, bool may_stop,
              Reply* reply) {
  static Exchange exchange;
  Parameters parameters;
  *reply = Reply{};
  reply->sent_ms = request.clock_ms;
  add_all(port, request, &parameters);
  ask(port.conninfo, kQuery, parameters.count, parameters.value, timeout_ms, may_stop, &exchange);
  reply->received_ms = wall_clock_ms();
  if (!exchange.answered) {
    strlcpy(reply->detail, exchange.failure, sizeof(reply->detail));
    make_ascii(reply->detail);
    return;
  }
  LeaseAnswer& answer = reply->answer;
  if (!read_status(exchange.column[0], &answer.status)) {
    snprintf(reply->detail, sizeof(reply->detail), "the lease server answered \"%.100s\"",
             exchange.column[0]);
    make_ascii(reply->detail);
    return;
  }
  answer.call = request.call;
  answer.incarnation = request.incarnation;
  reply->fleet = number(exchange, 1);
  answer.term = number(exchange, 2);
  answer.number = number(exchange, 3);
  answer.region = static_cast<int32_t>(number(exchange, 4));
  answer.grant = number(exchange, 5);
  answer.floor_ms = number(exchange, 6);
  answer.until_ms = number(exchange, 7);
  answer.clock_ms = number(exchange, 8);
  strlcpy(reply->detail, exchange.column[9], sizeof(reply->detail));
  make_ascii(reply->detail);
  reply->answered = true;
}

}  // namespace snowflake::lease
