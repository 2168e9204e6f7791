// Runs random schedules of a group of servers that lease regions. Checks that ids are unique,
// ascend within a server run (incarnation), and are greater than ids that observe() has accepted.
// When the faults of a random schedule have ended, every server must mint ids again.
//
// The environment variable SNOWFLAKE_LEASE_SCHEDULES sets the number of random schedules that the
// test runs.
#include "lease_world.hpp"

#include <gtest/gtest.h>

namespace snowflake {
namespace {

constexpr int kSteps = 500;

uint64_t schedules() {
  const char* text = std::getenv("SNOWFLAKE_LEASE_SCHEDULES");
  return text != nullptr && *text != '\0' ? std::strtoull(text, nullptr, 0) : kEffort * 5'000;
}

TEST(LeaseModel, NoScheduleBreaksAPromise) {
  std::unordered_map<std::string, uint64_t> events;
  uint64_t ids = 0;
  const char* const expected[] = {"taken",
                                  "extended",
                                  "full",
                                  "given back",
                                  "lost",
                                  "halted",
                                  "observe",
                                  "clone",
                                  "revoked",
                                  "database restored",
                                  "lease server recovered",
                                  "nothing lost",
                                  "requested again",
                                  "adopted",
                                  "dead",
                                  "taken by another",
                                  "lease server put back unnoticed"};
  for (uint64_t number = 0; number < schedules(); ++number) {
    World world(Random(7'000'000 + number), Rules{});
    world.run(kSteps);
    ASSERT_EQ(world.violation(), "") << "schedule " << number;
    ids += world.ids();
    for (const char* event : expected) events[event] += static_cast<uint64_t>(world.count(event));
  }
  // Checks that each expected event has occurred, because a model without the event would always
  // pass.
  for (const char* event : expected) EXPECT_GT(events[event], 0u) << event;
  EXPECT_GT(ids, schedules() * 10);
  std::printf("%" PRIu64 " schedules, %" PRIu64 " ids", schedules(), ids);
  for (const char* event : expected) std::printf(", %s %" PRIu64, event, events[event]);
  std::printf("\n");
}

struct Omission {
  const char* name;
  bool Rules::*rule;
  uint64_t from;  // first schedule of the search
};

class LeaseRule : public testing::TestWithParam<Omission> {};

// Shows that each rule of the lease protocol is needed: without the rule, some random schedule
// breaks a promise of the protocol. The search for a violation begins at a schedule that is known
// to have one, because some violations are rare.
TEST_P(LeaseRule, IsNeeded) {
  Rules rules;
  rules.*GetParam().rule = false;
  const char* text = std::getenv("SNOWFLAKE_LEASE_COUNT");
  const uint64_t most = text != nullptr ? std::strtoull(text, nullptr, 0) : 1'000'000;
  uint64_t broken = 0;
  uint64_t duplicates = 0;
  uint64_t number = 0;
  std::string first;
  while (number < most && (broken == 0 || text != nullptr)) {
    World world(Random::fixed(GetParam().from + number++), rules);
    world.run(kSteps);
    if (!world.violation().empty() && broken++ == 0) first = world.violation();
    if (world.violation().starts_with("duplicate")) ++duplicates;
  }
  EXPECT_GT(broken, 0u);
  std::printf("without %s: %" PRIu64 " of %" PRIu64 " schedules from %" PRIu64 " on, %" PRIu64
              " began with a duplicate, first: %s\n",
              GetParam().name, broken, number, GetParam().from, duplicates, first.c_str());
}

#define RULE(name, from)      \
  Omission {                  \
#name, &Rules::name, from \
  }
INSTANTIATE_TEST_SUITE_P(
    Model, LeaseRule,
    testing::Values(RULE(reopen_at_highest, 0), RULE(reopen_at_mark, 1),
                    RULE(highest_before_limit, 9319), RULE(highest_of_all, 39),
                    RULE(reader_checks, 35700), RULE(own_limit, 701), RULE(start_is_new, 2),
                    RULE(forget_then_read, 39), RULE(forget_at_all, 14), RULE(lost_is_new, 175),
                    RULE(mark_below_until, 0), RULE(observe_below_until, 0), RULE(commit_first, 0),
                    RULE(identity_checked, 4860), RULE(lease_checked, 0), RULE(grant_acks, 0),
                    RULE(adopt_while_leased, 20514), RULE(own_regions, 0), RULE(both_clocks, 0),
                    RULE(dead_by_reserve, 102607), RULE(old_is_stopped, 5432)),
    [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace snowflake
