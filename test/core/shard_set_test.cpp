#include "core/shard_set.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <sstream>

#include "support.hpp"

namespace snowflake {
namespace {

// Buffers have no spare byte, so that AddressSanitizer reports reads and writes past the end.
class Parsed {
 public:
  explicit Parsed(std::string_view text) : ranges_(new ShardRange[kMaxShardRanges]) {
    const auto exact = std::make_unique<char[]>(text.size());
    if (!text.empty()) std::memcpy(exact.get(), text.data(), text.size());
    result_ = parse_shard_set({exact.get(), text.size()}, ranges_.get());
  }
  ShardSetError error() const { return result_.error; }
  ShardSet set() const { return {ranges_.get(), result_.count}; }

 private:
  std::unique_ptr<ShardRange[]> ranges_;
  ParsedShardSet result_;
};

TEST(ShardSet, AllIsEveryShard) {
  for (const char* text : {"all", " all", "all\t ", "0-16777215"}) {
    const Parsed parsed(text);
    ASSERT_EQ(parsed.error(), ShardSetError::none) << '"' << text << '"';
    EXPECT_EQ(parsed.set().count, 1u);
    EXPECT_TRUE(parsed.set().contains(0));
    EXPECT_TRUE(parsed.set().contains(8191));
    EXPECT_TRUE(parsed.set().contains(kMaxShard));
    EXPECT_FALSE(parsed.set().contains(kMaxShard + 1));
    EXPECT_FALSE(parsed.set().contains(UINT32_MAX));
    EXPECT_EQ(parsed.set().largest(), kMaxShard);
  }
}

TEST(ShardSet, NumbersAndRanges) {
  for (const char* text : {"0-1023,2048", " 0 - 1023 ,\t2048 ", "0-1023,2048-2048", "0,1-1023,2048",
                           "000-01023,002048"}) {
    const Parsed parsed(text);
    ASSERT_EQ(parsed.error(), ShardSetError::none) << '"' << text << '"';
    EXPECT_TRUE(parsed.set().contains(0));
    EXPECT_TRUE(parsed.set().contains(1023));
    EXPECT_FALSE(parsed.set().contains(1024));
    EXPECT_FALSE(parsed.set().contains(2047));
    EXPECT_TRUE(parsed.set().contains(2048));
    EXPECT_FALSE(parsed.set().contains(2049));
    EXPECT_EQ(parsed.set().largest(), 2048u);
  }
  EXPECT_EQ(Parsed("5").set().count, 1u);
  EXPECT_TRUE(Parsed("5").set().contains(5));
  EXPECT_FALSE(Parsed("5").set().contains(4));
  EXPECT_FALSE(Parsed("5").set().contains(6));
}

TEST(ShardSet, Errors) {
  const struct {
    const char* text;
    ShardSetError error;
  } cases[] = {
      {"", ShardSetError::empty},
      {"  \t", ShardSetError::empty},
      {"x", ShardSetError::syntax},
      {",", ShardSetError::syntax},
      {"-", ShardSetError::syntax},
      {"-1", ShardSetError::syntax},
      {"1-", ShardSetError::syntax},
      {"1,", ShardSetError::syntax},
      {",1", ShardSetError::syntax},
      {"1,,2", ShardSetError::syntax},
      {"1, ,2", ShardSetError::syntax},
      {"1--2", ShardSetError::syntax},
      {"1-2-3", ShardSetError::syntax},
      {"1 2", ShardSetError::syntax},
      {"1;2", ShardSetError::syntax},
      {"1\n", ShardSetError::syntax},
      {"1x", ShardSetError::syntax},
      {"+1", ShardSetError::syntax},
      {"0x1", ShardSetError::syntax},
      {"ALL", ShardSetError::syntax},
      {"all,1", ShardSetError::syntax},
      {"1,all", ShardSetError::syntax},
      {"alle", ShardSetError::syntax},
      {"5-2", ShardSetError::backwards},
      {"1,9-8", ShardSetError::backwards},
      {"1,1", ShardSetError::overlap},
      {"2,1", ShardSetError::overlap},
      {"0-5,5", ShardSetError::overlap},
      {"0-5,3-9", ShardSetError::overlap},
      {"10-20,0-5", ShardSetError::overlap},
      {"16777216", ShardSetError::number},
      {"0-16777216", ShardSetError::number},
      {"4294967296", ShardSetError::number},
      {"99999999999999999999999", ShardSetError::number},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(Parsed(c.text).error(), c.error) << '"' << c.text << '"';
    EXPECT_EQ(Parsed(c.text).set().count, 0u);
    EXPECT_FALSE(Parsed(c.text).set().contains(0));
  }
  EXPECT_EQ(Parsed(std::string_view("1\0", 2)).error(), ShardSetError::syntax);
}

TEST(ShardSet, Holds1024Entries) {
  std::string text;
  for (uint32_t i = 0; i < kMaxShardRanges; ++i) text += (i ? "," : "") + std::to_string(2 * i);
  const Parsed full(text);
  ASSERT_EQ(full.error(), ShardSetError::none);
  EXPECT_EQ(full.set().count, kMaxShardRanges);
  for (uint32_t shard = 0; shard < 2 * kMaxShardRanges + 2; ++shard)
    ASSERT_EQ(full.set().contains(shard), shard % 2 == 0 && shard < 2 * kMaxShardRanges) << shard;
  EXPECT_EQ(Parsed(text + ",5000").error(), ShardSetError::too_many);
  EXPECT_EQ(Parsed(text + ",5000-6000,").error(), ShardSetError::too_many);
}

TEST(ShardSet, EveryErrorIsASentence) {
  EXPECT_STREQ(describe(ShardSetError::none), "");
  for (auto error = ShardSetError::empty; error <= ShardSetError::too_many;
       error = static_cast<ShardSetError>(static_cast<int>(error) + 1)) {
    const std::string_view text = describe(error);
    ASSERT_FALSE(text.empty());
    EXPECT_EQ(text.back(), '.') << text;
  }
}

std::optional<std::set<uint32_t>> expected(const std::string& text) {
  static const Pattern entry("^[ \t]*([0-9]+)[ \t]*(-[ \t]*([0-9]+)[ \t]*)?$");
  if (text.empty() || text.back() == ',') return std::nullopt;
  std::set<uint32_t> shards;
  std::istringstream entries(text);
  for (std::string item; std::getline(entries, item, ',');) {
    const auto match = entry.match(item);
    if (match.empty()) return std::nullopt;
    const unsigned long first = std::stoul(match[1]);
    const unsigned long last = match[2].empty() ? first : std::stoul(match[3]);
    if (last < first || (!shards.empty() && first <= *shards.rbegin())) return std::nullopt;
    for (auto shard = first; shard <= last; ++shard) shards.insert(static_cast<uint32_t>(shard));
  }
  return shards;
}

TEST(ShardSet, AgreesWithABruteForceSet) {
  constexpr std::string_view alphabet = "0123456789,,-- \tx";
  Random random(8);
  int accepted = 0;
  for (int i = 0; i < 5'000; ++i) {
    std::string text;
    uint64_t next = 0;
    for (uint64_t entries = random.between(1, 8); entries > 0; --entries) {
      const uint64_t first = next + random.below(20);
      const uint64_t last = first + (random.percent(50) ? random.below(20) : 0);
      text += (text.empty() ? "" : ",") + std::to_string(first);
      if (last != first || random.percent(10)) text += '-' + std::to_string(last);
      next = last + 1;
    }
    if (random.percent(60))
      text.insert(random.below(text.size() + 1), 1, alphabet[random.below(alphabet.size())]);
    const Parsed parsed(text);
    const auto shards = expected(text);
    ASSERT_EQ(parsed.error() == ShardSetError::none, shards.has_value()) << '"' << text << '"';
    if (!shards) continue;
    ++accepted;
    ASSERT_EQ(parsed.set().largest(), *shards->rbegin()) << '"' << text << '"';
    for (uint32_t shard = 0; shard < 400; ++shard)
      ASSERT_EQ(parsed.set().contains(shard), shards->count(shard) == 1) << '"' << text << '"';
  }
  EXPECT_GT(accepted, 1000);
}

}  // namespace
}  // namespace snowflake
