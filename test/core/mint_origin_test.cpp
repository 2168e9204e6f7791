#include "core/mint_origin.hpp"

#include <gtest/gtest.h>

namespace snowflake {
namespace {

constexpr ShardRange kAllRange[] = {{0, kMaxShard}};
constexpr ShardRange kSomeRanges[] = {{0, 4}, {7, 7}};
constexpr ShardSet kAll{kAllRange, 1};
constexpr ShardSet kSome{kSomeRanges, 2};

// Lists the times at which three sessions started. The wall clock is set back between the starts of
// the second and the third session.
constexpr SessionStart kFirst{100, 5000};
constexpr SessionStart kSecond{100, 5001};
constexpr SessionStart kThird{101, 4000};

struct MintOriginTest : testing::Test {
  MintOrigin origin{};
};

TEST_F(MintOriginTest, IsChosenByTheFirstSession) {
  EXPECT_FALSE(origin.is_chosen());
  EXPECT_TRUE(origin.offer(kFirst, 3, kSome));
  EXPECT_TRUE(origin.is_chosen());
  EXPECT_EQ(origin.region(), 3);
  EXPECT_TRUE(origin.shards().contains(7));
  EXPECT_FALSE(origin.shards().contains(5));
}

TEST_F(MintOriginTest, IsChangedByNewerSessionsOnly) {
  origin.offer(kSecond, 1, kAll);
  EXPECT_FALSE(origin.offer(kFirst, 2, kAll));
  EXPECT_FALSE(origin.offer(kSecond, 2, kAll));
  EXPECT_EQ(origin.region(), 1);
  EXPECT_TRUE(origin.offer(kThird, 2, kAll));
  EXPECT_FALSE(origin.offer(kSecond, 1, kAll));
  EXPECT_EQ(origin.region(), 2);
}

TEST_F(MintOriginTest, IsConfirmedByANewerSession) {
  origin.offer(kFirst, 1, kAll);
  EXPECT_FALSE(origin.offer(kThird, 1, kAll));
  // The second session started while the configuration had another region for a short time.
  EXPECT_FALSE(origin.offer(kSecond, 2, kAll));
  EXPECT_EQ(origin.region(), 1);
}

TEST_F(MintOriginTest, ChangesWithTheShards) {
  origin.offer(kFirst, 1, kAll);
  EXPECT_TRUE(origin.offer(kSecond, 1, kSome));
  EXPECT_TRUE(origin.offer(kThird, 1, {kSomeRanges, 1}));
  EXPECT_FALSE(origin.shards().contains(7));
}

TEST_F(MintOriginTest, IsKeptFromParallelWorkers) {
  EXPECT_FALSE(origin.offer(SessionStart{}, 1, kAll));
  EXPECT_FALSE(origin.is_chosen());
}

TEST(ShardSet, HasAll) {
  EXPECT_TRUE(kAll.has_all());
  EXPECT_FALSE(kSome.has_all());
  EXPECT_FALSE((ShardSet{kAllRange, 0}).has_all());
}

}  // namespace
}  // namespace snowflake
