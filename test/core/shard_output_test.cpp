#include <gtest/gtest.h>

#include "core/shard.hpp"
#include "support.hpp"

namespace snowflake {
namespace {

TEST(WriteIds, WritesTheIdOfEachPosition) {
  Random random(10);
  for (int i = 0; i < 2'000; ++i) {
    const Layout layout = random_layout(random);
    const auto shard = static_cast<uint32_t>(random.below(layout.shards()));
    const auto region = static_cast<uint32_t>(random.below(layout.regions()));
    // The ids begin shortly before `carry`, the first position in a time unit (tick), so the ids
    // often belong to two ticks.
    const uint64_t carry = layout.first_position(random.between(1, layout.last_minted_tick()));
    const uint64_t count = std::min(random.below(300), layout.end_position() - carry);
    const uint64_t first = carry - std::min(carry, random.below(300));
    // The array has no spare element, so that AddressSanitizer reports an error if write_ids()
    // writes too many ids.
    std::vector<int64_t> ids(count);
    write_ids(layout, region, shard, first, count, ids.data());
    for (uint64_t k = 0; k < count; ++k)
      ASSERT_EQ(ids[k], static_cast<int64_t>(layout.id(first + k, region, shard)))
          << testing::PrintToString(layout) << " position " << first << " + " << k;
    ASSERT_TRUE(strictly_increasing(ids));
  }
}

TEST(WriteIds, WritesUpToTheLastIdOfTheLayout) {
  const Layout layout = layout_from("instagram");
  std::vector<int64_t> ids(3000);
  write_ids(layout, 0, 8191, layout.end_position() - ids.size(), ids.size(), ids.data());
  EXPECT_EQ(ids.back(), INT64_MAX);
  EXPECT_TRUE(strictly_increasing(ids));
}

TEST(WriteIds, ZeroIdsWriteNothing) {
  int64_t untouched = 42;
  write_ids(layout_from("instagram"), 0, 5, 1000, 0, &untouched);
  EXPECT_EQ(untouched, 42);
}

TEST(Counters, AddUp) {
  Shard counter{};
  counter.statistics.add(1, 0, 0, 100);
  counter.statistics.add(50, 1, 3, 900);
  counter.statistics.add(7, 1, 0, 500);
  EXPECT_EQ(counter.statistics.ids, 58u);
  EXPECT_EQ(counter.statistics.batches, 2u);
  EXPECT_EQ(counter.statistics.borrowed, 3u);
  EXPECT_EQ(counter.statistics.last_id, 900u);
  EXPECT_EQ(counter.statistics.waits, 0u);
  EXPECT_EQ(counter.statistics.waited_us, 0u);
  EXPECT_EQ(counter.statistics.refusals, 0u);
}

TEST(Counters, ResetAllButTheLastId) {
  Shard counter{};
  counter.statistics.add(50, 1, 3, 900);
  counter.statistics.waits = 7;
  counter.statistics.waited_us = 70;
  counter.statistics.refusals = 700;
  counter.statistics.reset();
  EXPECT_EQ(counter.statistics.ids + counter.statistics.batches + counter.statistics.borrowed, 0u);
  EXPECT_EQ(counter.statistics.waits + counter.statistics.waited_us + counter.statistics.refusals,
            0u);
  EXPECT_EQ(counter.statistics.last_id, 900u);
  counter.statistics.add(2, 0, 0, 901);
  EXPECT_EQ(counter.statistics.ids, 2u);
}

TEST(Counters, ShareTheCountersCacheLineAndNothingElse) {
  Shard counters[2]{};
  EXPECT_EQ(reinterpret_cast<uintptr_t>(&counters[0]) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<char*>(&counters[1]) - reinterpret_cast<char*>(&counters[0]), 64);
}

}  // namespace
}  // namespace snowflake
