#include "core/shard.hpp"

#include <gtest/gtest.h>

#include "support.hpp"

namespace snowflake {
namespace {

constexpr uint64_t kNoLimit = UINT64_MAX;

// The layout has 16 ids per tick (time unit) and 41 time bits. The first of the 41 time bits is the
// sign bit of the id and always 0. The last tick in which ids are minted is therefore 2^40 - 1.
class ShardTest : public testing::Test {
 protected:
  static constexpr Layout layout = parse_layout("41/19/4", 0, kDefaultEpoch).layout;

  static constexpr uint64_t at(uint64_t tick, uint64_t sequence = 0) {
    return tick * 16 + sequence;
  }

  Claim claim(Bounds bounds, uint64_t wanted = 1) { return counter.claim(layout, bounds, wanted); }

  void expect_claimed(const Claim& claim, uint64_t first, uint64_t count) {
    EXPECT_EQ(claim.outcome, Outcome::claimed);
    EXPECT_EQ(claim.first, first);
    EXPECT_EQ(claim.count, count);
    EXPECT_EQ(claim.last(), first + count - 1);
    EXPECT_EQ(counter.last(), first + count - 1);
  }

  void expect_refused(Bounds bounds, Outcome outcome, uint64_t first) {
    const uint64_t before = counter.last();
    for (const uint64_t wanted : {uint64_t{1}, uint64_t{1000}}) {
      const Claim refused = claim(bounds, wanted);
      EXPECT_EQ(refused.outcome, outcome);
      EXPECT_EQ(refused.first, first);
      EXPECT_EQ(refused.count, 0u);
      EXPECT_EQ(refused.borrowed, 0u);
      EXPECT_EQ(counter.last(), before);
    }
  }

  Shard counter{};
};

TEST_F(ShardTest, BeginsATickAtSequenceZero) {
  expect_claimed(claim({5, 0, kNoLimit, 0}), at(5, 0), 1);
  expect_claimed(claim({5, 0, kNoLimit, 0}), at(5, 1), 1);
  expect_claimed(claim({7, 0, kNoLimit, 0}), at(7, 0), 1);
}

// A shard counter contains the last claimed position (time and sequence number), and starts at 0,
// so position 0 is never claimed.
TEST_F(ShardTest, NeverClaimsPositionZero) {
  expect_claimed(claim({0, 0, kNoLimit, 0}), at(0, 1), 1);
}

TEST_F(ShardTest, ABatchIsConsecutive) {
  expect_claimed(claim({5, 0, kNoLimit, 0}, 10), at(5, 0), 10);
  expect_claimed(claim({5, 0, kNoLimit, 0}, 6), at(5, 10), 6);
}

TEST_F(ShardTest, ABurstRunsIntoTheNextTicksAsFarAsTheLead) {
  expect_claimed(claim({5, 2, kNoLimit, 0}, 20), at(5, 0), 20);
  expect_claimed(claim({5, 2, kNoLimit, 0}, 1000), at(6, 4), 28);
  expect_refused({5, 2, kNoLimit, 0}, Outcome::ahead_of_clock, at(8));
  expect_claimed(claim({6, 2, kNoLimit, 0}, 1000), at(8), 16);
}

TEST_F(ShardTest, LeadZeroNeverLeavesTheTick) {
  expect_claimed(claim({5, 0, kNoLimit, 0}, 1000), at(5), 16);
  expect_refused({5, 0, kNoLimit, 0}, Outcome::ahead_of_clock, at(6));
  expect_claimed(claim({6, 0, kNoLimit, 0}), at(6), 1);
  expect_refused({5, 0, kNoLimit, 0}, Outcome::ahead_of_clock, at(6, 1));
}

TEST_F(ShardTest, AClockThatGoesBackDoesNotTakeIdsBack) {
  claim({100, 10, kNoLimit, 0});
  expect_claimed(claim({90, 10, kNoLimit, 0}), at(100, 1), 1);
  expect_refused({89, 10, kNoLimit, 0}, Outcome::ahead_of_clock, at(100, 2));
  expect_refused({0, 10, kNoLimit, 0}, Outcome::ahead_of_clock, at(100, 2));
  expect_claimed(claim({101, 10, kNoLimit, 0}), at(101), 1);
}

TEST_F(ShardTest, StopsBelowTheLimit) {
  expect_claimed(claim({5, 10, at(6, 3), 0}, 1000), at(5), 19);
  expect_refused({5, 10, at(6, 3), 0}, Outcome::at_limit, at(6, 3));
  expect_refused({6, 10, at(6, 3), 0}, Outcome::at_limit, at(6, 3));
  expect_claimed(claim({5, 10, at(6, 4), 0}), at(6, 3), 1);
  expect_refused({50, 0, at(50), 0}, Outcome::at_limit, at(50));
  expect_claimed(claim({50, 0, at(50, 1), 0}, 9), at(50), 1);
}

TEST_F(ShardTest, LimitZeroClaimsNothing) {
  expect_refused({0, 0, 0, 0}, Outcome::at_limit, 1);
  expect_refused({7, 0, 0, 0}, Outcome::at_limit, at(7));
}

TEST_F(ShardTest, TheLastIdOfTheLayoutIsClaimed) {
  const uint64_t last_tick = layout.last_minted_tick();
  expect_claimed(claim({last_tick, 100, kNoLimit, 0}, 15), at(last_tick), 15);
  expect_claimed(claim({last_tick, 100, kNoLimit, 0}, 1000), at(last_tick, 15), 1);
  EXPECT_EQ(static_cast<int64_t>(layout.id(counter.last(), 0, layout.shards() - 1)), INT64_MAX);
  expect_refused({last_tick, 100, kNoLimit, 0}, Outcome::exhausted, at(last_tick + 1));
}

// If there are several reasons why claim() cannot return an id, claim() returns the reason that
// lasts longest. For example, claim() reports that all ids of the layout are used, and not that the
// limit for new ids is reached.
TEST_F(ShardTest, TheMoreSevereOutcomeIsReturned) {
  const uint64_t end = layout.end_position();
  counter.raise_floor(end);
  expect_refused({5, 0, at(1), 0}, Outcome::exhausted, end);
  expect_refused({5, 0, kNoLimit, 0}, Outcome::exhausted, end);
  expect_refused({layout.last_minted_tick(), 0, at(1), 0}, Outcome::exhausted, end);
}

TEST_F(ShardTest, AheadOfTheClockComesBeforeTheLimit) {
  counter.raise_floor(at(20));
  expect_refused({5, 0, at(1), 0}, Outcome::ahead_of_clock, at(20));
  expect_refused({19, 0, at(20), 0}, Outcome::ahead_of_clock, at(20));
  expect_refused({20, 0, at(20), 0}, Outcome::at_limit, at(20));
  expect_refused({10, 10, at(20), 0}, Outcome::at_limit, at(20));
}

TEST_F(ShardTest, NothingBelowAFloorIsClaimed) {
  counter.raise_floor(at(30, 7));
  EXPECT_EQ(counter.last(), at(30, 6));
  expect_claimed(claim({25, 10, kNoLimit, 0}), at(30, 7), 1);
  counter.raise_floor(at(40));
  expect_claimed(claim({40, 10, kNoLimit, 0}), at(40), 1);
}

TEST_F(ShardTest, AFloorNeverLowers) {
  counter.raise_floor(at(30));
  for (const uint64_t floor : {uint64_t{0}, uint64_t{1}, at(29), at(30) - 1, at(30)}) {
    counter.raise_floor(floor);
    EXPECT_EQ(counter.last(), at(30) - 1) << floor;
  }
}

TEST_F(ShardTest, AFloorAtTheStartLeavesAFreshCounter) {
  counter.raise_floor(0);
  EXPECT_EQ(counter.last(), 0u);
  counter.raise_floor(1);
  EXPECT_EQ(counter.last(), 0u);
  counter.raise_floor(2);
  expect_claimed(claim({0, 0, kNoLimit, 0}), 2, 1);
}

TEST_F(ShardTest, TheHighestFloorDoesNotWrap) {
  counter.raise_floor(UINT64_MAX);
  expect_refused({5, 100, kNoLimit, 0}, Outcome::exhausted, UINT64_MAX);
  expect_refused({layout.last_minted_tick(), 100, kNoLimit, 0}, Outcome::exhausted, UINT64_MAX);
}

TEST_F(ShardTest, CountsTheTicksOpenedBeforeTheirTime) {
  const auto borrowed = [&](uint64_t now, uint64_t wanted) {
    return claim({now, 100, kNoLimit, 0}, wanted).borrowed;
  };
  EXPECT_EQ(borrowed(5, 16), 0u);   // all of tick 5
  EXPECT_EQ(borrowed(5, 1), 1u);    // opens tick 6
  EXPECT_EQ(borrowed(5, 15), 0u);   // the rest of tick 6
  EXPECT_EQ(borrowed(5, 33), 3u);   // opens ticks 7 to 9
  EXPECT_EQ(borrowed(8, 16), 1u);   // finishes 9, opens 10
  EXPECT_EQ(borrowed(10, 20), 1u);  // finishes 10, opens 11
  EXPECT_EQ(borrowed(30, 40), 2u);  // ticks 30, 31 and 32
  EXPECT_EQ(borrowed(40, 1), 0u);
  counter.raise_floor(at(50));
  EXPECT_EQ(borrowed(40, 1), 1u);
}

// Claims ids in the last tick (time unit) of each layout. Ids may be 60,000 ticks ahead of the
// clock, but claim() must return no id that the layout cannot encode.
TEST_F(ShardTest, TheLeadMayReachPastTheEndOfAnyLayout) {
  for_each_division([](const Layout& any) {
    Shard near_end{};
    const uint64_t end = any.end_position();
    near_end.raise_floor(end - 1);
    const Bounds bounds{any.last_minted_tick(), 60'000, kNoLimit, 0};
    const Claim last = near_end.claim(any, bounds, 5);
    ASSERT_EQ(last.outcome, Outcome::claimed) << testing::PrintToString(any);
    ASSERT_EQ(last.first, end - 1);
    ASSERT_EQ(last.count, 1u);
    ASSERT_EQ(near_end.claim(any, bounds, 5).outcome, Outcome::exhausted);
  });
}

}  // namespace
}  // namespace snowflake
