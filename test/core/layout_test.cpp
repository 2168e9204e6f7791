// Ids and their fields: every division of the 64 bits, at its boundaries.
#include "core/layout.hpp"

#include <gtest/gtest.h>

#include "support.hpp"

namespace snowflake {
namespace {

// Both published by those who made them, so that they pin down which bit is where.
TEST(Layout, DecodesATweet) {
  const Layout twitter = layout_from("twitter", 0, 1288834974657);
  constexpr uint64_t tweet = 1541815603606036480;  // 2022-06-28 16:07:40.105 UTC
  EXPECT_EQ(twitter.ms_of_tick(twitter.tick_of(tweet)), 1656432460105);
  EXPECT_EQ(twitter.shard_of(tweet), 378u);
  EXPECT_EQ(twitter.region_of(tweet), 11u);
  EXPECT_EQ(twitter.sequence_of(tweet), 0u);
}

TEST(Layout, EncodesInstagramsExample) {
  const Layout instagram = layout_from("instagram", 0, 1314220021721);
  EXPECT_EQ(instagram.id(instagram.first_position(1387263000) + 5001 % 1024, 1341),
            uint64_t{1387263000} << 23 | uint64_t{1341} << 10 | 905);
}

TEST(Layout, Js53StaysWithinADouble) {
  const Layout js53 = layout_from("js53");
  EXPECT_EQ(js53.id(js53.end_position() - 1, js53.shards() - 1), (uint64_t{1} << 53) - 1);
  EXPECT_EQ(js53.tick_ms, 10u);
}

TEST(Layout, InstagramLastsUntil2059) {
  const Layout layout = layout_from("instagram");
  EXPECT_EQ(layout.ms_of_tick(layout.last_minted_tick() + 1), 2835201227776);  // 2059-11-05
}

// Multiplications, not shifts, so as not to repeat what is tested.
bool round_trips(const Layout& layout, uint64_t tick, uint32_t shard, uint64_t sequence) {
  const uint64_t per_tick = layout.ids_per_tick();
  const uint64_t position = tick * per_tick + sequence;
  const uint64_t id = layout.id(position, shard);
  return id == (tick * layout.shards() + shard) * per_tick + sequence &&
         layout.tick_of(id) == tick && layout.shard_of(id) == shard &&
         layout.sequence_of(id) == sequence && layout.position_of(id) == position &&
         layout.tick_of_position(position) == tick &&
         layout.first_position(tick) == tick * per_tick &&
         layout.region_of(id) == shard / (uint32_t{1} << layout.local_bits) && layout.contains(id);
}

TEST(Layout, EveryDivisionRoundTrips) {
  Random random(1);
  size_t divisions = 0;
  for_each_division([&](const Layout& layout) {
    ++divisions;
    const uint64_t minted = layout.last_minted_tick();
    const uint32_t shards = layout.shards();
    const uint64_t per_tick = layout.ids_per_tick();
    for (const uint64_t tick :
         {uint64_t{0}, uint64_t{1}, minted, std::min(minted + 1, layout.last_tick()),
          layout.last_tick(), random.between(0, layout.last_tick())})
      for (const uint32_t shard :
           {0u, shards - 1, static_cast<uint32_t>(random.between(0, shards - 1))})
        for (const uint64_t sequence : {uint64_t{0}, per_tick - 1, random.below(per_tick)})
          ASSERT_TRUE(round_trips(layout, tick, shard, sequence))
              << testing::PrintToString(layout) << ": " << tick << ' ' << shard << ' ' << sequence;
  });
  EXPECT_GT(divisions, 100'000u);
}

TEST(Layout, TheLastMintedIdIsTheLastThatIsNotNegative) {
  for_each_division([](const Layout& layout) {
    const uint64_t last = layout.end_position() - 1;
    const uint64_t greatest = layout.id(last, layout.shards() - 1);
    ASSERT_EQ(layout.tick_of_position(last), layout.last_minted_tick());
    ASSERT_EQ(layout.sequence_of(greatest), layout.ids_per_tick() - 1);
    ASSERT_EQ(greatest, (uint64_t{1} << std::min(layout.id_bits(), 63u)) - 1)
        << testing::PrintToString(layout);
    // One position more is negative, or does not fit.
    const uint64_t beyond = layout.id(layout.end_position(), 0);
    ASSERT_EQ(beyond, greatest + 1);
    ASSERT_TRUE(layout.id_bits() == 64 ? static_cast<int64_t>(beyond) < 0
                                       : !layout.contains(beyond));
  });
}

TEST(Layout, OnlyA64BitLayoutKeepsHalfOfItsTime) {
  EXPECT_EQ(layout_from("41/13/10").last_minted_tick(), (uint64_t{1} << 40) - 1);
  EXPECT_EQ(layout_from("41/13/10").last_tick(), (uint64_t{1} << 41) - 1);
  EXPECT_EQ(layout_from("41/13/9").last_minted_tick(), (uint64_t{1} << 41) - 1);
  EXPECT_EQ(layout_from("20/0/0").last_minted_tick(), (uint64_t{1} << 20) - 1);
}

TEST(Layout, IdsOfAShardGrowWithThePosition) {
  Random random(2);
  for (int i = 0; i < 20'000; ++i) {
    const Layout layout = random_layout(random);
    const uint64_t end = layout.end_position();
    const auto shard = static_cast<uint32_t>(random.below(layout.shards()));
    const uint64_t low = random.below(end - 1);
    const uint64_t high = random.between(low + 1, end - 1);
    const uint64_t carry = layout.first_position(random.between(1, layout.last_minted_tick()));
    ASSERT_LT(layout.id(low, shard), layout.id(low + 1, shard)) << testing::PrintToString(layout);
    ASSERT_LT(layout.id(low, shard), layout.id(high, shard)) << testing::PrintToString(layout);
    ASSERT_LT(layout.id(carry - 1, shard), layout.id(carry, shard));
    // A later tick is a greater id whatever the shards.
    ASSERT_LT(layout.id(carry - 1, layout.shards() - 1), layout.id(carry, 0));
  }
}

TEST(Layout, ContainsWhatHasNoBitsAboveTheTime) {
  for_each_division([](const Layout& layout) {
    const unsigned bits = layout.id_bits();
    ASSERT_TRUE(layout.contains(0));
    ASSERT_EQ(layout.contains(~uint64_t{0}), bits == 64);
    if (bits == 64) return;
    ASSERT_TRUE(layout.contains((uint64_t{1} << bits) - 1)) << testing::PrintToString(layout);
    ASSERT_FALSE(layout.contains(uint64_t{1} << bits)) << testing::PrintToString(layout);
  });
}

// Others fill all 64 bits: their ids are negative as bigint, and decode nevertheless.
TEST(Layout, ANegativeIdDecodesUnsigned) {
  for (const char* text : {"instagram", "41/3+10/10", "32/10/22", "42/0/22", "53/0/11"}) {
    const Layout layout = layout_from(text);
    ASSERT_EQ(layout.id_bits(), 64u);
    const auto foreign = static_cast<uint64_t>(int64_t{-1});
    EXPECT_TRUE(layout.contains(foreign));
    EXPECT_EQ(layout.tick_of(foreign), layout.last_tick()) << text;
    EXPECT_EQ(layout.shard_of(foreign), layout.shards() - 1) << text;
    EXPECT_EQ(layout.sequence_of(foreign), layout.ids_per_tick() - 1) << text;
    EXPECT_GT(layout.ms_of_tick(layout.tick_of(foreign)), layout.epoch_ms) << text;

    const auto lowest = static_cast<uint64_t>(INT64_MIN);
    EXPECT_EQ(layout.tick_of(lowest), layout.last_minted_tick() + 1) << text;
    EXPECT_EQ(layout.shard_of(lowest), 0u) << text;
    EXPECT_EQ(layout.sequence_of(lowest), 0u) << text;
  }
}

}  // namespace
}  // namespace snowflake
