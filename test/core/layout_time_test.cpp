#include <gtest/gtest.h>

#include "core/layout.hpp"
#include "support.hpp"

namespace snowflake {
namespace {

Layout with_tick(uint32_t tick_ms, int64_t epoch_ms) {
  return layout_from("38/7/8", tick_ms, epoch_ms);
}

TEST(LayoutTime, TicksBeginAtTheEpoch) {
  for (const int64_t tick : {int64_t{1}, int64_t{10}, int64_t{100}, int64_t{1000}})
    for (const int64_t epoch : {int64_t{0}, int64_t{1288834974657}, kDefaultEpoch, kEpochEnd - 1}) {
      const Layout layout = with_tick(static_cast<uint32_t>(tick), epoch);
      EXPECT_EQ(layout.ms_of_tick(0), epoch);
      EXPECT_EQ(layout.ms_of_tick(7), epoch + 7 * tick);
      EXPECT_EQ(layout.tick_at(epoch), 0u);
      EXPECT_EQ(layout.tick_at(epoch + tick - 1), 0u);
      EXPECT_EQ(layout.tick_at(epoch + tick), 1u);
      EXPECT_EQ(layout.tick_at(epoch + 2 * tick - 1), 1u);
      EXPECT_EQ(layout.tick_from(epoch), 0u);
      EXPECT_EQ(layout.tick_from(epoch + 1), 1u);
      EXPECT_EQ(layout.tick_from(epoch + tick), 1u);
      EXPECT_EQ(layout.tick_from(epoch + tick + 1), 2u);
    }
}

TEST(LayoutTime, TicksEncloseEveryTime) {
  Random random(3);
  for (int i = 0; i < 50'000; ++i) {
    const Layout layout = random_layout(random);
    const uint64_t tick = random.percent(10)   ? layout.last_tick()
                          : random.percent(10) ? layout.last_minted_tick()
                                               : random.between(0, layout.last_tick());
    const int64_t begin = layout.ms_of_tick(tick);
    const int64_t ms = begin + static_cast<int64_t>(random.below(layout.tick_ms));
    ASSERT_EQ(layout.tick_at(begin), tick) << testing::PrintToString(layout);
    ASSERT_EQ(layout.tick_from(begin), tick) << testing::PrintToString(layout);
    ASSERT_EQ(layout.tick_at(ms), tick) << testing::PrintToString(layout);
    ASSERT_EQ(layout.tick_from(ms), ms == begin ? tick : tick + 1);
    ASSERT_GE(layout.ms_of_tick(layout.tick_from(ms)), ms);
    ASSERT_LT(layout.ms_of_tick(layout.tick_from(ms)) - ms, layout.tick_ms);
  }
}

TEST(LayoutTime, TheFirstHourEndsBetweenTwoTicks) {
  Random random(4);
  for (int i = 0; i < 50'000; ++i) {
    const Layout layout = random_layout(random);
    const uint64_t tick = 3'600'000 / layout.tick_ms;
    if (tick > layout.last_tick()) continue;
    const uint64_t id = layout.id(layout.first_position(tick), 0, 0);
    ASSERT_FALSE(layout.is_of_first_hour(id)) << testing::PrintToString(layout);
    ASSERT_TRUE(layout.is_of_first_hour(id - 1)) << testing::PrintToString(layout);
  }
}

// PostgreSQL must be able to show the time of every id as a timestamp.
TEST(LayoutTime, EveryTickEndsWithinPostgresTimestamps) {
  for_each_division([](Layout layout) {
    for (const uint32_t tick : {1u, 10u, 100u, 1000u})
      for (const int64_t epoch : {int64_t{0}, kEpochEnd - 1}) {
        layout.tick_ms = tick;
        layout.epoch_ms = epoch;
        const bool fits =
            (layout.last_tick() + 1) * tick <= static_cast<uint64_t>(kEndOfTimestamps - epoch);
        ASSERT_EQ(check(layout), fits ? LayoutError::none : LayoutError::end_of_time)
            << testing::PrintToString(layout);
      }
  });
}

TEST(LayoutTime, TheEndOfTimestampsHasATick) {
  for (const uint32_t tick : {1u, 10u, 100u, 1000u}) {
    const Layout layout = with_tick(tick, 0);
    const auto end = static_cast<uint64_t>(kEndOfTimestamps);
    EXPECT_EQ(layout.tick_at(kEndOfTimestamps - 1), (end - 1) / tick);
    EXPECT_EQ(layout.tick_from(kEndOfTimestamps - 1), tick == 1 ? end - 1 : end / tick);
    EXPECT_EQ(layout.tick_from(kEndOfTimestamps), end / tick);
  }
}

}  // namespace
}  // namespace snowflake
