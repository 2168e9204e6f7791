#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "crowd.hpp"

namespace snowflake {
namespace {

constexpr size_t kClaimers = 4;

void run_once(const Plan& plan, uint64_t salt) {
  SCOPED_TRACE(testing::Message() << "SNOWFLAKE_TEST_SEED=" << test_seed());
  const auto stage = std::make_unique<Stage>();
  const auto journals = std::make_unique<Journal[]>(kClaimers);
  std::vector<std::thread> claimers;
  for (size_t i = 0; i < kClaimers; ++i)
    claimers.emplace_back([&, i] { claim_ids(*stage, journals[i], plan, Random(salt + 1 + i)); });
  const auto gaps =
      conduct(*stage, plan, Random(salt), [&] { return stage->finished == kClaimers; });
  for (auto& claimer : claimers) claimer.join();

  audit(*stage, plan, {journals.get(), kClaimers}, gaps);
  uint64_t counted = 0;
  uint64_t last_id = 0;
  for (const Counter& counter : stage->counters) {
    counted += counter.shard.statistics.ids;
    last_id = std::max<uint64_t>(last_id, counter.shard.statistics.last_id);
  }
  EXPECT_EQ(counted, kClaimers * plan.quota);
  int64_t greatest = 0;
  for (size_t i = 0; i < kClaimers; ++i) {
    EXPECT_EQ(journals[i].used, plan.quota);
    for (const int64_t id : journals[i].ids) greatest = std::max(greatest, id);
  }
  EXPECT_EQ(last_id, static_cast<uint64_t>(greatest));
}

void run(const Plan& plan, uint64_t salt) {
  for (uint64_t round = 0; round < kEffort && !testing::Test::HasFailure(); ++round)
    run_once(plan, salt + 10 * round);
}

TEST(ShardThreads, ShareCountersWithoutSharingIds) {
  run({}, 100);
}

TEST(ShardThreads, WithoutLead) {
  Plan plan;
  plan.lead = 0;
  plan.quota = kJournalSize / 4;
  run(plan, 200);
}

TEST(ShardThreads, WithSpread) {
  Plan plan;
  plan.spread = 5;
  plan.quota = kJournalSize / 4;
  run(plan, 300);
}

// The layout has one id per tick (time unit), so each claim moves to the next tick.
TEST(ShardThreads, WithoutSequence) {
  Plan plan;
  plan.layout = layout_from("41/2/0");
  plan.quota = kJournalSize / 4;
  run(plan, 400);
}

}  // namespace
}  // namespace snowflake
