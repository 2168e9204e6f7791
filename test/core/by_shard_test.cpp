
#include "core/by_shard.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "core/layout.hpp"

namespace snowflake {
namespace {

constexpr Layout layout_named(std::string_view name) {
  return parse_layout(name, 0, kDefaultEpoch).layout;
}

// Computes the partition of a row like PostgreSQL, for a partition key of one column.
constexpr uint64_t hash_combine64(uint64_t a, uint64_t b) {
  a ^= b + 0x49a0f4dd15e5a8e3 + (a << 54) + (a >> 7);
  return a;
}

TEST(ByShard, TheHashBecomesTheShard) {
  for (uint32_t shard = 0; shard < 1u << kMaxOriginBits; ++shard)
    ASSERT_EQ(hash_combine64(0, partition_hash(shard)), shard);
}

TEST(ByShard, TheShardDoesNotDependOnTheRegion) {
  for (const auto name : {"instagram", "twitter", "js53", "40/3+10/10", "41/5+8/10", "41/0/12"}) {
    const Layout layout = layout_named(name);
    const uint32_t last_home = layout.shards() - 1;
    const uint32_t last_region = layout.regions() - 1;
    for (const uint32_t home : {0u, last_home / 3, last_home}) {
      for (const uint32_t region : {0u, last_region}) {
        for (const uint64_t sequence : {uint64_t{0}, layout.sequence_mask()}) {
          const uint64_t position = layout.first_position(layout.last_minted_tick()) | sequence;
          const uint64_t id = layout.id(position, region, home);
          EXPECT_EQ(layout.shard_of(id), home) << name;
        }
      }
    }
  }
}

// Numbers that are not ids need a partition too, because PostgreSQL may compute the partition of
// any constant in a query.
TEST(ByShard, AnyNumberHasAShard) {
  for (const auto name : {"instagram", "twitter", "js53", "41/0/12", "20/0/0"}) {
    const Layout layout = layout_named(name);
    for (const int64_t id : {int64_t{-1}, std::numeric_limits<int64_t>::min(),
                             std::numeric_limits<int64_t>::max(), int64_t{5}}) {
      EXPECT_LT(layout.shard_of(static_cast<uint64_t>(id)), layout.shards()) << name;
    }
  }
}

}  // namespace
}  // namespace snowflake
