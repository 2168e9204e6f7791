// Usage: trace SEED STEPS. Prints STEPS random lease requests with the answers of a C++ model, one
// request per line. A test compares the answers of the C++ model with the answers of the SQL
// functions. The times of requests are close together, so that many requests come near the end of a
// lease.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "lease_server.hpp"

namespace {

using namespace snowflake;

std::mt19937_64 engine;
int64_t below(int64_t end) {
  return static_cast<int64_t>(engine() % static_cast<uint64_t>(end));
}
bool percent(int64_t chance) {
  return below(100) < chance;
}

constexpr const char* kCalls[] = {"acquire", "renew", "give_back"};
constexpr const char* kStatuses[] = {"granted", "given_back",  "lost",      "full",
                                     "halted",  "clock_ahead", "term_over", "taken"};
constexpr const char* kStates[] = {"given_back", "held", "revoked", "lost"};
constexpr int64_t kStart = 1'900'000'000'000;

FleetState fleet;
std::vector<LeasedRegion> regions;
std::vector<LeaseRequest> asked;
int64_t now;

void reset() {
  fleet = {};
  fleet.term = fleet.lasting = term_at(kStart, below(1 << 20));
  fleet.newest = below(3);
  fleet.longest_ms = 1 + below(60'000);
  fleet.skew_ms = 1 + below(5'000);
  regions.assign(static_cast<size_t>(1 + below(6)), LeasedRegion{});
  asked.clear();
  now = kStart + below(1000);
  std::printf("reset\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%zu\n", fleet.term,
              fleet.newest, fleet.longest_ms, fleet.skew_ms, regions.size());
}

LeaseRequest random_request() {
  // Makes a random request, which often repeats or changes an earlier request.
  LeaseRequest request{};
  if (!asked.empty() && percent(60)) request = asked[static_cast<size_t>(below(std::ssize(asked)))];
  if (asked.empty() || percent(40)) request.incarnation = 1 + below(6);
  if (asked.empty() || percent(60)) request.call = static_cast<LeaseCall>(below(3));
  if (percent(40)) {
    const LeasedRegion& region = regions[static_cast<size_t>(below(std::ssize(regions)))];
    request.region = static_cast<int32_t>(&region - regions.data());
    request.incarnation = region.incarnation == 0 ? 1 : region.incarnation;
    request.server = region.server < 0 ? 0 : region.server;
    request.grant = region.grant;
    request.acked = region.nonce;
    request.highest_ms = percent(60) ? now - below(2'000) : region.floor_ms + below(70'000) - 5'000;
    if (percent(40)) request.call = LeaseCall::give_back;
  }
  if (percent(30)) request.server = static_cast<int32_t>(below(3));
  if (percent(20)) request.region = static_cast<int32_t>(below(std::ssize(regions)));
  if (percent(20)) request.grant = below(fleet.newest + 2);
  if (percent(20)) request.acked = below(5);
  if (percent(50)) request.nonce = 1 + below(5);
  if (percent(10)) request.highest_ms = kStart + below(70'000);
  request.term = percent(70)   ? fleet.term
                 : percent(80) ? 0
                 : percent(50) ? fleet.term + below(3) - 1
                               : fleet.lasting - below(2);
  request.newest = percent(40)         ? fleet.newest
                   : below(1000) < 995 ? below(fleet.newest + 1)
                                       : fleet.newest + 1;
  request.clock_ms = now + (percent(80) ? below(500) - 250 : below(20'000) - 10'000);
  request.length_ms = below(70'000);
  request.age_ms = percent(50) ? below(70'000) : 0;
  request.floor_ms = now - below(2'000);
  request.until_ms = request.floor_ms + below(30'000);
  request.incarnation = std::max<int64_t>(1, request.incarnation);
  request.highest_ms = std::max<int64_t>(0, request.highest_ms);
  if (percent(20) && fleet.adopt_ms != 0) {  // granted before a recovery
    request.call = LeaseCall::renew;
    request.region = static_cast<int32_t>(below(std::ssize(regions)));
    request.term = percent(70) ? fleet.lasting + below(2) : fleet.lasting - 1;
    request.until_ms = fleet.adopt_ms + below(20'000) - 2'000;
    request.floor_ms = request.until_ms - below(40'000);
    request.clock_ms = now;
  }
  return request;
}

// Returns the region numbers that the setting snowflake.leased_regions of a server lists. Sometimes
// returns regions of another server, as if the configuration had changed.
std::vector<int32_t> configured(int32_t server) {
  std::vector<int32_t> own;
  const auto count = static_cast<int32_t>(std::ssize(regions));
  for (int32_t i = 0; i < count; ++i)
    if (percent(10) ? percent(50) : i % 3 == server || (server == 0 && count < 3)) own.push_back(i);
  if (own.empty()) own.push_back(static_cast<int32_t>(below(count)));
  return own;
}

void print_state() {
  std::printf("\t%d", fleet.halted);
  for (const int64_t number : {fleet.term, fleet.newest, fleet.reported_term, fleet.began,
                               fleet.lasting, fleet.adopt_ms, fleet.newest_ms})
    std::printf(",%" PRId64, number);
  for (const LeasedRegion& r : regions)
    std::printf(";%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%d,%s", r.floor_ms,
                r.until_ms, r.incarnation, r.grant, r.nonce, r.server,
                kStates[static_cast<int>(r.state)]);
  std::printf("\n");
}

void step() {
  now += percent(10) ? below(30'000) : below(500);
  if (percent(3)) {
    const int64_t salt = 1 + below(1 << 20);
    const bool silent = percent(70);
    confirm_data_loss(fleet, regions, now, salt, silent);
    std::printf("data_loss\t%" PRId64 "\t%" PRId64 "\t%d", now, salt, silent);
    return print_state();
  }
  if (!fleet.halted && percent(2)) {
    const int64_t salt = 1 + below(1 << 20);
    confirm_no_data_loss(fleet, now, salt);
    std::printf("no_data_loss\t%" PRId64 "\t%" PRId64, now, salt);
    return print_state();
  }
  if (percent(3)) {
    const int64_t region = below(std::ssize(regions));
    revoke(regions[static_cast<size_t>(region)]);
    std::printf("revoke\t%" PRId64, region);
    return print_state();
  }
  const LeaseRequest q = random_request();
  if (asked.size() < 30) asked.push_back(q);
  const std::vector<int32_t> own = configured(q.server);
  const LeaseAnswer a = decide(fleet, regions, own, q, now);
  std::printf("ask\t%s", kCalls[static_cast<int>(q.call)]);
  for (const int64_t number : {int64_t{q.server}, q.incarnation, q.term, q.newest, q.nonce, q.acked,
                               q.clock_ms, q.length_ms, q.age_ms, int64_t{q.region}, q.floor_ms,
                               q.until_ms, q.grant, q.highest_ms, now})
    std::printf("\t%" PRId64, number);
  for (size_t i = 0; i < own.size(); ++i) std::printf("%s%d", i == 0 ? "\t{" : ",", own[i]);
  std::printf("}");
  std::printf("\t%s,%" PRId64 ",%" PRId64 ",%d,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64,
              kStatuses[static_cast<int>(a.status)], a.term, a.number, a.region, a.grant,
              a.floor_ms, a.until_ms, a.clock_ms);
  print_state();
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  engine.seed(std::strtoull(arguments[1], nullptr, 0));
  const int64_t steps = std::strtoll(arguments[2], nullptr, 0);
  for (int64_t i = 0; i < steps; ++i) {
    if (i % 60 == 0) reset();
    step();
  }
}
