// Tests composing and decoding ids with every division of the 64 bits into fields, at the limits of
// each field.
#include "core/layout.hpp"

#include <gtest/gtest.h>

#include "support.hpp"

namespace snowflake {
namespace {

// Ids that Twitter and Instagram published prove the position of each bit.
TEST(Layout, DecodesATweet) {
  const Layout twitter = layout_from("twitter", 0, 1288834974657);
  constexpr uint64_t tweet = 1541815603606036480;  // 2022-06-28 16:07:40.105 UTC
  EXPECT_EQ(twitter.ms_of_tick(twitter.tick_of(tweet)), 1656432460105);
  EXPECT_EQ(twitter.origin_of(tweet), 378u);
  EXPECT_EQ(twitter.region_of(tweet), 11u);
  EXPECT_EQ(twitter.shard_of(tweet), 26u);
  EXPECT_EQ(twitter.sequence_of(tweet), 0u);
}

TEST(Layout, EncodesInstagramsExample) {
  const Layout instagram = layout_from("instagram", 0, 1314220021721);
  EXPECT_EQ(instagram.id(instagram.first_position(1387263000) + 5001 % 1024, 0, 1341),
            uint64_t{1387263000} << 23 | uint64_t{1341} << 10 | 905);
}

TEST(Layout, Js53StaysWithinADouble) {
  const Layout js53 = layout_from("js53");
  EXPECT_EQ(js53.id(js53.end_position() - 1, 0, js53.shards() - 1), (uint64_t{1} << 53) - 1);
  EXPECT_EQ(js53.tick_ms, 10u);
}

TEST(Layout, InstagramLastsUntil2059) {
  const Layout layout = layout_from("instagram");
  EXPECT_EQ(layout.ms_of_tick(layout.last_minted_tick() + 1), 2835201227776);  // 2059-11-05
}

// Composes an id by multiplication, because the tested code uses shifts.
bool round_trips(const Layout& layout, uint64_t tick, uint32_t region, uint32_t shard,
                 uint64_t sequence) {
  const uint64_t per_tick = layout.ids_per_tick();
  const uint64_t position = tick * per_tick + sequence;
  const uint64_t id = layout.id(position, region, shard);
  return id ==
             ((tick * layout.regions() + region) * layout.shards() + shard) * per_tick + sequence &&
         layout.tick_of(id) == tick && layout.region_of(id) == region &&
         layout.shard_of(id) == shard && layout.sequence_of(id) == sequence &&
         layout.origin_of(id) == layout.origin(region, shard) &&
         layout.position_of(id) == position && layout.tick_of_position(position) == tick &&
         layout.first_position(tick) == tick * per_tick &&
         layout.contains(id) == (tick <= layout.last_minted_tick());
}

TEST(Layout, EveryDivisionRoundTrips) {
  Random random(1);
  size_t divisions = 0;
  for_each_division([&](const Layout& layout) {
    ++divisions;
    const uint64_t minted = layout.last_minted_tick();
    const uint32_t regions = layout.regions();
    const uint32_t shards = layout.shards();
    const uint64_t per_tick = layout.ids_per_tick();
    for (const uint64_t tick :
         {uint64_t{0}, uint64_t{1}, minted, std::min(minted + 1, layout.last_tick()),
          layout.last_tick(), random.between(0, layout.last_tick())})
      for (const uint32_t origin : {0u, 1u, 2u}) {
        const auto region =
            origin == 2 ? static_cast<uint32_t>(random.below(regions)) : origin * (regions - 1);
        const auto shard = static_cast<uint32_t>(random.below(shards));
        for (const uint32_t which : {0u, shards - 1, shard})
          for (const uint64_t sequence : {uint64_t{0}, per_tick - 1, random.below(per_tick)})
            ASSERT_TRUE(round_trips(layout, tick, region, which, sequence))
                << testing::PrintToString(layout) << ": " << tick << ' ' << region << ' ' << which
                << ' ' << sequence;
      }
  });
  EXPECT_GT(divisions, 100'000u);
}

TEST(Layout, TheLastMintedIdIsTheLastThatIsNotNegative) {
  for_each_division([](const Layout& layout) {
    const uint64_t last = layout.end_position() - 1;
    const uint64_t greatest = layout.id(last, layout.regions() - 1, layout.shards() - 1);
    ASSERT_EQ(layout.tick_of_position(last), layout.last_minted_tick());
    ASSERT_EQ(layout.sequence_of(greatest), layout.ids_per_tick() - 1);
    ASSERT_EQ(greatest, (uint64_t{1} << std::min(layout.id_bits(), 63u)) - 1)
        << testing::PrintToString(layout);
    // The position after the last one would give an id that is negative or has too many bits.
    const uint64_t beyond = layout.id(layout.end_position(), 0, 0);
    ASSERT_EQ(beyond, greatest + 1);
    ASSERT_EQ(layout.last_id(), greatest);
    ASSERT_TRUE(layout.contains(greatest) && !layout.contains(beyond));
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
    const auto region = static_cast<uint32_t>(random.below(layout.regions()));
    const uint64_t low = random.below(end - 1);
    const uint64_t high = random.between(low + 1, end - 1);
    const uint64_t carry = layout.first_position(random.between(1, layout.last_minted_tick()));
    const auto id = [&](uint64_t position) { return layout.id(position, region, shard); };
    ASSERT_LT(id(low), id(low + 1)) << testing::PrintToString(layout);
    ASSERT_LT(id(low), id(high)) << testing::PrintToString(layout);
    ASSERT_LT(id(carry - 1), id(carry));
    ASSERT_LT(layout.id(carry - 1, layout.regions() - 1, layout.shards() - 1),
              layout.id(carry, 0, 0));
  }
}

TEST(Layout, TheFirstPositionAfterAnIdIsTheLeastThatIsGreater) {
  Random random(3);
  int carried = 0;
  for (int i = 0; i < 50'000; ++i) {
    const Layout layout = random_layout(random);
    const auto origin = [&] {
      return static_cast<uint32_t>(random.below(uint64_t{1} << layout.origin_bits()));
    };
    const uint32_t own = origin();
    const uint32_t other = random.below(3) == 0 ? own : origin();
    const auto id = [&](uint64_t position, uint32_t where) {
      return layout.id(position, where >> layout.shard_bits, where & (layout.shards() - 1));
    };
    uint64_t position = random.between(1, layout.end_position() - layout.ids_per_tick() - 1);
    if (random.below(4) == 0) position |= layout.sequence_mask();
    const uint64_t after = id(position, other);
    const uint64_t first = layout.first_position_after(after, own);
    ASSERT_GT(id(first, own), after) << testing::PrintToString(layout);
    if (first > 0) {
      ASSERT_LE(id(first - 1, own), after) << testing::PrintToString(layout);
    }
    carried += layout.tick_of_position(first) > layout.tick_of_position(position);
  }
  EXPECT_GT(carried, 1000);
}

TEST(Layout, ContainsExactlyTheIdsThatCanBeMinted) {
  for_each_division([](const Layout& layout) {
    ASSERT_TRUE(layout.contains(0));
    ASSERT_FALSE(layout.contains(~uint64_t{0}));
    ASSERT_FALSE(layout.contains(static_cast<uint64_t>(INT64_MIN)));
    const unsigned bits = std::min(layout.id_bits(), 63u);
    ASSERT_TRUE(layout.contains((uint64_t{1} << bits) - 1)) << testing::PrintToString(layout);
    ASSERT_FALSE(layout.contains(uint64_t{1} << bits)) << testing::PrintToString(layout);
  });
}

}  // namespace
}  // namespace snowflake
