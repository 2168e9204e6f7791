#include "core/keyed_max.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "support.hpp"

namespace snowflake {
namespace {

TEST(KeyedMax, KeepsTheGreatestValueOfEachKey) {
  auto table = std::make_unique<KeyedMax<64>>();
  std::map<uint32_t, int64_t> model;
  Random random(1);
  for (int i = 0; i < 10'000; ++i) {
    // The hash table has 64 entries, so keys that differ by 64 compete for the same entry.
    const auto key = static_cast<uint32_t>(1 + random.below(4) * 64 + random.below(12));
    const auto value = static_cast<int64_t>(1 + random.below(1000));
    table->raise(key, value);
    model[key] = std::max(model[key], value);
    ASSERT_EQ(table->read(key), model[key]);
  }
  for (uint32_t key = 1; key < 300; ++key) ASSERT_EQ(table->read(key), model[key]) << key;
}

// If a KeyedMax table is full, all further keys share one maximum value. For a key that does not
// fit into a full KeyedMax table, read() may return too high a value, but never too low a value.
TEST(KeyedMax, LosesNoValueWhenFull) {
  auto table = std::make_unique<KeyedMax<8>>();
  for (uint32_t key = 1; key <= 20; ++key) table->raise(key, 1000 + key);
  for (uint32_t key = 1; key <= 8; ++key) EXPECT_EQ(table->read(key), 1000 + key);
  for (uint32_t key = 9; key <= 21; ++key) EXPECT_EQ(table->read(key), 1020);
  table->raise(3, 5000);
  EXPECT_EQ(table->read(3), 5000);
  EXPECT_EQ(table->read(30), 1020);
}

TEST(KeyedMax, ConcurrentWritersLoseNoValue) {
  for (int round = 0; round < 50; ++round) {
    auto table = std::make_unique<KeyedMax<32>>();
    std::vector<std::thread> writers;
    for (uint32_t w = 0; w < 4; ++w)
      writers.emplace_back([&table, w] {
        for (uint32_t i = 0; i < 200; ++i)
          for (uint32_t key = 1; key <= 24; ++key) table->raise(key, i * 10 + w + key);
      });
    for (auto& writer : writers) writer.join();
    for (uint32_t key = 1; key <= 24; ++key) ASSERT_EQ(table->read(key), 1993 + key);
  }
}

}  // namespace
}  // namespace snowflake
