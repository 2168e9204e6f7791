// Tests the Feistel network that encrypts decimal numbers for aliases. In this test, the round
// functions of the Feistel network are simple functions instead of the cipher AES. The SQL tests of
// the extension snowflake_alias compare aliases with results of the cipher FF1 (NIST SP 800-38G),
// which uses AES.
#include "../../extensions/alias/src/decimal_permutation.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "support.hpp"

namespace snowflake {
namespace {

struct Mixing {
  uint64_t key;
  Uint128 operator()(unsigned round, uint64_t half) const {
    Random random(key ^ uint64_t{round} << 56 ^ half);
    return Uint128{random.any()} << 32 | random.any() >> 32;
  }
};

TEST(DecimalPermutation, EveryNumberComesBackWithItsDigits) {
  Random random(1);
  for (unsigned digits = kMinDecimalDigits; digits <= kMaxDecimalDigits; ++digits) {
    const uint64_t size = power_of_ten(digits);
    for (uint64_t i = 0; i < 5'000 * kEffort; ++i) {
      const Mixing mixing{random.any()};
      const uint64_t value = i == 0 ? 0 : i == 1 ? size - 1 : random.any() % size;
      const uint64_t permuted = permute_decimal(value, digits, mixing);
      ASSERT_LT(permuted, size) << digits;
      ASSERT_EQ(unpermute_decimal(permuted, digits, mixing), value) << digits;
      ASSERT_EQ(permute_decimal(unpermute_decimal(value, digits, mixing), digits, mixing), value);
    }
  }
}

TEST(DecimalPermutation, SixDigitsAreAllUsedOnce) {
  std::vector<bool> seen(1'000'000);
  const Mixing mixing{5};
  for (uint64_t value = 0; value < seen.size(); ++value) {
    const uint64_t permuted = permute_decimal(value, 6, mixing);
    ASSERT_FALSE(seen[permuted]) << value;
    seen[permuted] = true;
  }
}

// If the round functions of the cipher are constant, its result can be computed by hand. In the
// cipher FF1, even rounds add to the upper half of the number, and odd rounds to its lower half.
// The sums are modulo a power of ten. If a number has an odd number of digits, its lower half has
// one digit more.
TEST(DecimalPermutation, AlternatesBetweenTheHalves) {
  const auto constant = [](unsigned round, uint64_t) { return (Uint128{1} << 95) + round; };
  const auto sum = [](unsigned first, uint64_t size) {
    uint64_t total = 0;
    for (unsigned round = first; round < 10; round += 2)
      total += static_cast<uint64_t>(((Uint128{1} << 95) + round) % size);
    return total;
  };
  for (const uint64_t value : {uint64_t{0}, uint64_t{1234567}, uint64_t{9999999}}) {
    const uint64_t upper = (value / 10000 + sum(0, 1000)) % 1000;
    const uint64_t lower = (value % 10000 + sum(1, 10000)) % 10000;
    EXPECT_EQ(permute_decimal(value, 7, constant), upper * 10000 + lower) << value;
  }
}

TEST(DecimalPermutation, AsksForEachRoundWithTheHalfThatStays) {
  std::vector<std::pair<unsigned, uint64_t>> asked;
  const auto none = [&](unsigned round, uint64_t half) {
    asked.emplace_back(round, half);
    return Uint128{0};
  };
  permute_decimal(uint64_t{9'223'372'036'854'775'807}, 19, none);
  ASSERT_EQ(asked.size(), 10u);
  for (unsigned round = 0; round < 10; ++round)
    EXPECT_EQ(asked[round],
              std::make_pair(round, round % 2 == 0 ? uint64_t{6854775807} : uint64_t{922337203}));
}

TEST(Decimal, ReadsWhatItWrote) {
  Random random(2);
  for (size_t length = 1; length <= 19; ++length) {
    for (uint64_t i = 0; i < 1'000; ++i) {
      const uint64_t value = random.any() % power_of_ten(static_cast<unsigned>(length));
      const auto exact = std::make_unique<char[]>(length);
      write_decimal(value, exact.get(), length);
      const auto parsed = read_decimal({exact.get(), length}, length);
      ASSERT_EQ(parsed.error, NumeralError::none);
      ASSERT_EQ(parsed.value, value);
    }
  }
}

TEST(Decimal, IsStrict) {
  EXPECT_EQ(read_decimal("9999999999999999999", 19).value, 9'999'999'999'999'999'999u);
  EXPECT_EQ(read_decimal("", 6).error, NumeralError::length);
  EXPECT_EQ(read_decimal("12345", 6).error, NumeralError::length);
  EXPECT_EQ(read_decimal("1234567", 6).at, 7u);
  EXPECT_EQ(read_decimal(std::string(100'000, '9'), 19).error, NumeralError::length);
  for (const char* text : {"+12345", "-12345", " 12345", "12345 ", "1234a6",
                           "12\xd9\xa1"
                           "345"})
    EXPECT_EQ(read_decimal(text, 6).error, NumeralError::symbol) << text;
  EXPECT_EQ(read_decimal("12345x", 6).at, 5u);
  EXPECT_EQ(read_decimal({"123\0456", 7}, 7).at, 3u);
}

}  // namespace
}  // namespace snowflake
