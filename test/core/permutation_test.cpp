// Tests the Feistel network with which the extension snowflake_alias encrypts ids. The round
// functions of the Feistel network are simple functions in this test, but use the cipher AES in the
// extension. Tests base62 texts of numbers with more than 64 bits. The SQL test
// extensions/alias/sql/alias.sql tests the encryption of ids with AES.
#include "../../extensions/alias/src/permutation.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "../../extensions/alias/src/base62_wide.hpp"
#include "support.hpp"

namespace snowflake {
namespace {

struct Mixing {
  uint64_t key;
  uint32_t operator()(unsigned round, uint32_t half) const {
    Random random(key ^ uint64_t{round} << 32 ^ half);
    return static_cast<uint32_t>(random.any());
  }
};

TEST(Permutation, EveryIdComesBackAndStaysAnId) {
  Random random(1);
  for (uint64_t i = 0; i < 50'000 * kEffort; ++i) {
    const Mixing mixing{random.any()};
    const uint64_t id = random.any() >> random.between(1, 63);
    const uint64_t permuted = permute(id, mixing);
    ASSERT_LE(permuted, kGreatestId) << id;
    ASSERT_EQ(unpermute(permuted, mixing), id);
    ASSERT_EQ(permute(unpermute(id, mixing), mixing), id);
  }
}

// If the round functions of the cipher are constant, its result can be computed by hand. Even
// rounds of the cipher FF1 add a number to the upper 31 bits of the id, modulo 2^31. Odd rounds add
// a number to the lower 32 bits of the id, modulo 2^32.
TEST(Permutation, AlternatesBetweenTheHalves) {
  const auto constant = [](unsigned round, uint32_t) { return 0x70000000u + round; };
  const auto sum = [](uint64_t first) {
    uint64_t total = 0;
    for (uint64_t round = first; round < 10; round += 2) total += 0x70000000 + round;
    return total;
  };
  for (const uint64_t id : {uint64_t{0}, uint64_t{1}, uint64_t{123456789012345678}, kGreatestId}) {
    const uint64_t upper = (id / 4294967296 + sum(0)) % 2147483648;
    const uint64_t lower = (id % 4294967296 + sum(1)) % 4294967296;
    EXPECT_EQ(permute(id, constant), upper * 4294967296 + lower) << id;
  }
}

TEST(Permutation, AsksForEachRoundWithTheHalfThatStays) {
  std::vector<std::pair<unsigned, uint32_t>> asked;
  const auto none = [&](unsigned round, uint32_t half) {
    asked.emplace_back(round, half);
    return 0u;
  };
  permute(uint64_t{7} << 32 | 9, none);
  ASSERT_EQ(asked.size(), 10u);
  for (unsigned round = 0; round < 10; ++round)
    EXPECT_EQ(asked[round], std::make_pair(round, round % 2 == 0 ? 9u : 7u));
}

TEST(Permutation, NeighboursGoApart) {
  std::set<uint64_t> seen;
  const Mixing mixing{5};
  for (uint64_t id = 0; id < 10'000; ++id) seen.insert(permute(id, mixing));
  EXPECT_EQ(seen.size(), 10'000u);
  uint64_t nearest = kGreatestId;
  for (auto it = seen.begin(); std::next(it) != seen.end(); ++it)
    nearest = std::min(nearest, *std::next(it) - *it);
  EXPECT_GT(nearest, 1u);
}

std::string written(Uint128 value, size_t length) {
  const auto exact = std::make_unique<char[]>(length);
  write_base62_wide(value, exact.get(), length);
  return {exact.get(), length};
}

TEST(Base62Wide, ContinuesBase62) {
  Random random(2);
  for (uint64_t i = 0; i < 20'000 * kEffort; ++i) {
    const uint64_t value = random.any() >> random.below(64);
    char text[kBase62Length];
    write_base62(value, text);
    ASSERT_EQ(written(value, 11), std::string(text, kBase62Length));
  }
  EXPECT_EQ(written(~Uint128{0}, 22), "7n42DGM5Tflk9n8mt7Fhc7");
}

TEST(Base62Wide, ReadsWhatItWroteUpToTheGreatest) {
  Random random(3);
  for (uint64_t i = 0; i < 20'000 * kEffort; ++i) {
    const Uint128 any = (Uint128{random.any()} << 64 | random.any()) >> random.below(128);
    const Uint128 greatest = (Uint128{random.any()} << 64 | random.any()) >> random.below(128);
    const auto parsed = read_base62_wide(written(any, 22), 22, greatest);
    ASSERT_EQ(parsed.error, any <= greatest ? NumeralError::none : NumeralError::overflow);
    ASSERT_TRUE(any > greatest || parsed.value == any);
    for (const Uint128 edge : {greatest - 1, greatest, greatest + 1}) {
      if (edge == 0 || edge == ~Uint128{0}) continue;
      ASSERT_EQ(read_base62_wide(written(edge, 22), 22, greatest).error,
                edge <= greatest ? NumeralError::none : NumeralError::overflow);
    }
  }
}

TEST(Base62Wide, IsStrict) {
  constexpr Uint128 all = ~Uint128{0};
  EXPECT_EQ(read_base62_wide("7n42DGM5Tflk9n8mt7Fhc7", 22, all).error, NumeralError::none);
  EXPECT_EQ(read_base62_wide("7n42DGM5Tflk9n8mt7Fhc8", 22, all).error, NumeralError::overflow);
  EXPECT_EQ(read_base62_wide("zzzzzzzzzzzzzzzzzzzzzz", 22, all).error, NumeralError::overflow);
  EXPECT_EQ(read_base62_wide("zzzzzzzzzzzzzzzzzzzzzzz", 22, all).error, NumeralError::length);
  EXPECT_EQ(read_base62_wide("", 22, all).error, NumeralError::length);
  EXPECT_EQ(read_base62_wide("0000-", 22, all).error, NumeralError::symbol);
  EXPECT_EQ(read_base62_wide("0000-", 22, all).at, 4u);
}

}  // namespace
}  // namespace snowflake
