// Tests the output of a shard: ids in an array, and the counters.
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
    // Close to the end of a tick, so that larger layouts carry too.
    const uint64_t carry = layout.first_position(random.between(1, layout.last_minted_tick()));
    const uint64_t count = std::min(random.below(300), layout.end_position() - carry);
    const uint64_t first = carry - std::min(carry, random.below(300));
    // Exact size: AddressSanitizer reports one id too many.
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
  Shard word{};
  word.counters.add(1, 0, 0, 100);
  word.counters.add(50, 1, 3, 900);
  word.counters.add(7, 1, 0, 500);  // counted later than it was claimed
  EXPECT_EQ(word.counters.ids, 58u);
  EXPECT_EQ(word.counters.batches, 2u);
  EXPECT_EQ(word.counters.borrowed, 3u);
  EXPECT_EQ(word.counters.last_id, 900u);
  EXPECT_EQ(word.counters.waits, 0u);
  EXPECT_EQ(word.counters.waited_us, 0u);
  EXPECT_EQ(word.counters.refusals, 0u);
}

TEST(Counters, ResetAllButTheLastId) {
  Shard word{};
  word.counters.add(50, 1, 3, 900);
  word.counters.waits = 7;
  word.counters.waited_us = 70;
  word.counters.refusals = 700;
  word.counters.reset();
  EXPECT_EQ(word.counters.ids + word.counters.batches + word.counters.borrowed, 0u);
  EXPECT_EQ(word.counters.waits + word.counters.waited_us + word.counters.refusals, 0u);
  EXPECT_EQ(word.counters.last_id, 900u);
  word.counters.add(2, 0, 0, 901);
  EXPECT_EQ(word.counters.ids, 2u);
}

TEST(Counters, ShareTheWordsCacheLineAndNothingElse) {
  Shard words[2]{};
  EXPECT_EQ(reinterpret_cast<uintptr_t>(&words[0]) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<char*>(&words[1]) - reinterpret_cast<char*>(&words[0]), 64);
}

}  // namespace
}  // namespace snowflake
