#include "core/seal.hpp"

#include <gtest/gtest.h>

#include "support.hpp"

namespace snowflake {
namespace {

// Existing databases contain these seals (layouts as numbers), so the seals must never change.
TEST(Seal, IsPinned) {
  EXPECT_EQ(seal_of(layout_from("instagram")),
            1735689600000 * 2012500 + 22 * 57500 + 13 * 92 + 10 * 4);
  EXPECT_EQ(seal_of(layout_from("twitter", 0, 0)), 22 * 57500 + 5 * 2300 + 5 * 92 + 12 * 4);
  EXPECT_EQ(seal_of(layout_from("js53", 0, 0)), 19 * 57500 + 7 * 92 + 8 * 4 + 1);
}

TEST(Seal, EveryLayoutRoundTrips) {
  Random random(6);
  for_each_division([&](Layout layout) {
    for (const uint32_t tick : {1u, 10u, 100u, 1000u})
      for (const int64_t epoch : {int64_t{0}, kDefaultEpoch, kEpochEnd - 1,
                                  static_cast<int64_t>(random.below(uint64_t{kEpochEnd}))}) {
        layout.tick_ms = tick;
        layout.epoch_ms = epoch;
        const int64_t seal = seal_of(layout);
        ASSERT_EQ(layout_of(seal), layout) << testing::PrintToString(layout);
        ASSERT_GT(seal, 0);
        ASSERT_LT(seal, INT64_MAX / 2);
      }
  });
}

TEST(Seal, ZeroIsNotALayout) {
  EXPECT_NE(check(layout_of(0)), LayoutError::none);
}

// A damaged database may contain any number as its seal (its layout). If layout_of() decodes a
// number to a valid layout, seal_of() must encode the layout to the same number.
TEST(Seal, GarbageIsRefusedOrExact) {
  Random random(7);
  int accepted = 0;
  for (int i = 0; i < 200'000; ++i) {
    const auto seal = static_cast<int64_t>(random.percent(50) ? random.any() : random.any() >> 41);
    const Layout layout = layout_of(seal);
    if (check(layout) != LayoutError::none) continue;
    ++accepted;
    ASSERT_EQ(seal_of(layout), seal);
    ASSERT_LE(layout.ms_of_tick(layout.last_tick()), kEndOfTimestamps);
  }
  EXPECT_GT(accepted, 1000);
  for (const int64_t seal : {INT64_MIN, INT64_MAX, int64_t{-1}, int64_t{1}})
    EXPECT_NE(check(layout_of(seal)), LayoutError::none) << seal;
}

}  // namespace
}  // namespace snowflake
