#include <gtest/gtest.h>

#include <map>

#include "core/shard.hpp"
#include "support.hpp"

namespace snowflake {
namespace {

constexpr Layout layout = parse_layout("instagram", 0, kDefaultEpoch).layout;

uint64_t mint(Shard& counter, uint64_t now, uint64_t spread, uint64_t wanted = 1) {
  const Claim claim = counter.claim(layout, {now, 10, UINT64_MAX, spread}, wanted);
  EXPECT_EQ(claim.outcome, Outcome::claimed);
  EXPECT_EQ(claim.count, wanted);
  return claim.first;
}

TEST(ShardSpread, BeginsOneAfterTheLastSequence) {
  Shard counter{};
  EXPECT_EQ(mint(counter, 100, 4), layout.first_position(100) + 1);
  EXPECT_EQ(mint(counter, 101, 4), layout.first_position(101) + 2);
  EXPECT_EQ(mint(counter, 102, 4), layout.first_position(102) + 3);
  EXPECT_EQ(mint(counter, 103, 4), layout.first_position(103) + 0);
  EXPECT_EQ(mint(counter, 103, 4), layout.first_position(103) + 1);  // consecutive in the tick
  EXPECT_EQ(mint(counter, 110, 4, 7), layout.first_position(110) + 2);
  EXPECT_EQ(mint(counter, 111, 4), layout.first_position(111) + (2 + 7 - 1 + 1) % 4);
}

TEST(ShardSpread, ZeroAndOneBeginAtZero) {
  for (const uint64_t spread : {uint64_t{0}, uint64_t{1}}) {
    Shard counter{};
    for (uint64_t now = 1; now < 20; ++now)
      EXPECT_EQ(mint(counter, now, spread), layout.first_position(now));
  }
}

TEST(ShardSpread, TheWholeTickWrapsToZero) {
  Shard counter{};
  counter.raise_floor(layout.first_position(50));
  EXPECT_EQ(mint(counter, 60, layout.ids_per_tick()), layout.first_position(60));
  EXPECT_EQ(mint(counter, 61, layout.ids_per_tick()), layout.first_position(61) + 1);
}

TEST(ShardSpread, ABurstCarriesToSequenceZero) {
  Shard counter{};
  mint(counter, 100, 8, layout.ids_per_tick() - 1);  // sequences 1 to 1023
  EXPECT_EQ(mint(counter, 100, 8), layout.first_position(101));
  EXPECT_EQ(mint(counter, 101, 8), layout.first_position(101) + 1);

  mint(counter, 101, 7, layout.ids_per_tick() - 2);  // sequences 2 to 1023
  EXPECT_EQ(mint(counter, 102, 7), layout.first_position(102));
}

TEST(ShardSpread, TheStartCountsAgainstLimitAndLead) {
  Shard counter{};
  counter.raise_floor(layout.first_position(10) + 6);  // sequence numbers up to 5
  const uint64_t start = layout.first_position(20) + 6;
  const Claim refused = counter.claim(layout, {20, 0, start, 8}, 1);
  EXPECT_EQ(refused.outcome, Outcome::at_limit);
  EXPECT_EQ(refused.first, start);
  EXPECT_EQ(counter.last(), layout.first_position(10) + 5);
  const Claim claim = counter.claim(layout, {20, 0, UINT64_MAX, 8}, 5000);
  EXPECT_EQ(claim.first, start);
  EXPECT_EQ(claim.count, layout.ids_per_tick() - 6);
}

TEST(ShardSpread, LowRatesUseAllResidues) {
  Shard counter{};
  std::map<uint64_t, int> residues;
  for (uint64_t now = 1000; now < 1000 + 16 * 50; ++now)
    ++residues[layout.id(mint(counter, now, 16), 0, 5) % 16];
  ASSERT_EQ(residues.size(), 16u);
  for (const auto& [residue, times] : residues) EXPECT_EQ(times, 50) << residue;
}

// Calls of settle() must not change how evenly the remainders `id % spread` are distributed.
TEST(ShardSpread, SettlingLeavesAllResidues) {
  for (const uint64_t settled_ahead : {uint64_t{0}, uint64_t{3}}) {
    Shard counter{};
    std::map<uint64_t, int> residues;
    for (uint64_t now = 1000; now < 1000 + 16 * 50 * 5; now += 5) {
      counter.raise_to_tick(layout, now - 1, 16);
      counter.raise_to_tick(layout, now - settled_ahead, 16);
      const uint64_t first = mint(counter, now, 16);
      ASSERT_EQ(layout.tick_of_position(first), now);
      ++residues[layout.id(first, 0, 5) % 16];
    }
    ASSERT_EQ(residues.size(), 16u);
    for (const auto& [residue, times] : residues) EXPECT_EQ(times, 50) << residue;
  }
}

TEST(ShardSpread, SettlingWithoutSpreadSkipsNoPosition) {
  Shard counter{};
  mint(counter, 50, 0, 7);
  counter.raise_to_tick(layout, 60, 0);
  EXPECT_EQ(counter.last() + 1, layout.first_position(60));
  counter.raise_to_tick(layout, 55, 8);
  EXPECT_EQ(counter.last() + 1, layout.first_position(60));
}

TEST(ShardSpread, NeverLeavesTheTick) {
  Random random(9);
  for (int i = 0; i < 20'000; ++i) {
    const Layout any = random_layout(random);
    const uint64_t spread = random.between(1, any.ids_per_tick());
    const uint64_t now = random.between(2, any.last_minted_tick());
    Shard counter{};
    const uint64_t before =
        any.first_position(random.below(now - 1)) + random.below(any.ids_per_tick());
    counter.raise_floor(before + 1);
    const Claim claim = counter.claim(any, {now, 0, UINT64_MAX, spread}, 1);
    ASSERT_EQ(claim.outcome, Outcome::claimed) << testing::PrintToString(any);
    ASSERT_EQ(claim.first, now * any.ids_per_tick() + (before % any.ids_per_tick() + 1) % spread);
    ASSERT_LT(claim.first, (now + 1) * any.ids_per_tick());
  }
}

}  // namespace
}  // namespace snowflake
