// Random schedules of a whole fleet: no id twice, ids go up within an incarnation, observe() is
// respected, and once the faults stop everybody mints again.
//
// SNOWFLAKE_LEASE_SCHEDULES in the environment asks for a longer run.
#include "lease_world.hpp"

#include <gtest/gtest.h>

namespace snowflake {
namespace {

constexpr int kSteps = 500;

uint64_t schedules() {
  const char* text = std::getenv("SNOWFLAKE_LEASE_SCHEDULES");
  return text != nullptr && *text != '\0' ? std::strtoull(text, nullptr, 0) : kEffort * 10'000;
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
                                  "evicted",
                                  "database restored",
                                  "control recovered",
                                  "nothing lost",
                                  "adopted",
                                  "dead",
                                  "unproven"};
  for (uint64_t number = 0; number < schedules(); ++number) {
    World world(number, Rules{});
    world.run(kSteps);
    ASSERT_EQ(world.violation(), "") << "schedule " << number;
    ids += world.ids();
    for (const char* event : expected) events[event] += static_cast<uint64_t>(world.count(event));
  }
  // A model in which nothing happens would be easily content.
  for (const char* event : expected) EXPECT_GT(events[event], 0u) << event;
  EXPECT_GT(ids, schedules() * 10);
  std::printf("%" PRIu64 " schedules, %" PRIu64 " ids", schedules(), ids);
  for (const char* event : expected) std::printf(", %s %" PRIu64, event, events[event]);
  std::printf("\n");
}

struct Omission {
  const char* name;
  bool Rules::*rule;
};

class LeaseRule : public testing::TestWithParam<Omission> {};

// The other half of the evidence: without the rule, some schedule breaks a promise.
TEST_P(LeaseRule, IsNeeded) {
  Rules rules;
  rules.*GetParam().rule = false;
  const char* text = std::getenv("SNOWFLAKE_LEASE_COUNT");
  const uint64_t most = text != nullptr ? std::strtoull(text, nullptr, 0) : 100'000;
  uint64_t broken = 0;
  uint64_t duplicates = 0;
  uint64_t number = 0;
  std::string first;
  while (number < most && (broken == 0 || text != nullptr)) {
    World world(number++, rules);
    world.run(kSteps);
    if (!world.violation().empty() && broken++ == 0) first = world.violation();
    if (world.violation().starts_with("duplicate")) ++duplicates;
  }
  EXPECT_GT(broken, 0u);
  std::printf("without %s: %" PRIu64 " of %" PRIu64 " schedules, %" PRIu64
              " began with a duplicate, first: %s\n",
              GetParam().name, broken, number, duplicates, first.c_str());
}

#define RULE(name)      \
  Omission {            \
#name, &Rules::name \
  }
INSTANTIATE_TEST_SUITE_P(
    Model, LeaseRule,
    testing::Values(RULE(reopen_at_highest), RULE(reopen_at_mark), RULE(highest_before_limit),
                    RULE(highest_of_all), RULE(reader_checks), RULE(own_limit), RULE(start_is_new),
                    RULE(forget_then_read), RULE(forget_at_all), RULE(lost_is_new),
                    RULE(mark_below_until), RULE(observe_below_until), RULE(commit_first),
                    RULE(identity_checked), RULE(lease_checked), RULE(grant_acks),
                    RULE(adopt_while_leased), RULE(adopt_signed_only), RULE(proofs_checked),
                    RULE(dead_by_reserve), RULE(old_is_stopped)),
    [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace snowflake
