#include "core/base62.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "support.hpp"

namespace snowflake {
namespace {

constexpr std::string_view kAlphabet =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

std::string written(uint64_t value) {
  char text[kBase62Length];
  write_base62(value, text);
  return {text, kBase62Length};
}

// The buffer has no spare byte, so that AddressSanitizer reports a read past the end.
ParsedNumeral read(std::string_view text) {
  const std::vector<char> exact(text.begin(), text.end());
  return read_base62({exact.data(), text.size()});
}

std::string by_division(uint64_t value) {
  std::string text;
  for (size_t i = 0; i < 11; ++i, value /= 62) text.insert(text.begin(), kAlphabet[value % 62]);
  return text;
}

// Returns the number that a text of eleven base62 symbols encodes, even if the number has more than
// 64 bits.
std::optional<unsigned __int128> by_multiplication(std::string_view text) {
  if (text.size() != 11) return std::nullopt;
  unsigned __int128 value = 0;
  for (const char c : text) {
    const size_t digit = kAlphabet.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    value = value * 62 + digit;
  }
  return value;
}

TEST(Base62, KnownNumbers) {
  EXPECT_EQ(written(0), "00000000000");
  EXPECT_EQ(written(61), "0000000000z");
  EXPECT_EQ(written(62), "00000000010");
  EXPECT_EQ(written(kGreatestId), "AzL8n0Y58m7");
  EXPECT_EQ(written(~uint64_t{0}), "LygHa16AHYF");
}

TEST(Base62, IsLongDivision) {
  Random random(62);
  for (uint64_t power = 1, i = 0; i < 11; ++i, power *= 62)
    for (const uint64_t value : {power - 1, power, power + 1})
      ASSERT_EQ(written(value), by_division(value)) << value;
  for (uint64_t i = 0; i < 100'000 * kEffort; ++i) {
    const uint64_t value = random.any() >> random.below(64);
    ASSERT_EQ(written(value), by_division(value)) << value;
  }
}

TEST(Base62, EveryIdComesBack) {
  Random random(63);
  for (unsigned bit = 0; bit < 63; ++bit)
    for (const uint64_t value : {uint64_t{1} << bit, (uint64_t{1} << bit) - 1, kGreatestId - bit}) {
      const auto parsed = read(written(value));
      ASSERT_EQ(parsed.error, NumeralError::none) << value;
      ASSERT_EQ(parsed.value, value);
    }
  for (uint64_t i = 0; i < 100'000 * kEffort; ++i) {
    const uint64_t value = random.any() >> random.between(1, 63);
    const auto parsed = read(written(value));
    ASSERT_EQ(parsed.error, NumeralError::none) << value;
    ASSERT_EQ(parsed.value, value);
  }
}

TEST(Base62, SortsAsIdsDo) {
  Random random(64);
  for (uint64_t i = 0; i < 100'000 * kEffort; ++i) {
    const uint64_t a = random.any() >> random.below(64);
    const uint64_t b = random.percent(50) ? a + 1 : random.any() >> random.below(64);
    ASSERT_EQ(written(a) < written(b), a < b) << a << ' ' << b;
  }
}

TEST(Base62, TheFirstInvalidNumber) {
  EXPECT_EQ(read("AzL8n0Y58m8").error, NumeralError::overflow);
  EXPECT_EQ(read("LygHa16AHYF").error, NumeralError::overflow);
  EXPECT_EQ(read("LygHa16AHYG").error, NumeralError::overflow);  // 2^64, which is not 0
  EXPECT_EQ(read("zzzzzzzzzzz").error, NumeralError::overflow);
}

TEST(Base62, WrongLengths) {
  for (const char* text : {"", "0", "0000000000", "000000000000", "00000000000000000000000000"}) {
    const auto parsed = read(text);
    EXPECT_EQ(parsed.error, NumeralError::length) << text;
    EXPECT_EQ(parsed.at, std::strlen(text));
  }
}

TEST(Base62, ReportsTheOffsetOfAnInvalidSymbol) {
  for (size_t at = 0; at < 11; ++at)
    for (int c = 0; c < 256; ++c) {
      std::string text = "00000000000";
      text[at] = static_cast<char>(c);
      const auto parsed = read(text);
      if (kAlphabet.find(static_cast<char>(c)) != std::string_view::npos) {
        ASSERT_NE(parsed.error, NumeralError::symbol) << c;
        continue;
      }
      ASSERT_EQ(parsed.error, NumeralError::symbol) << c;
      ASSERT_EQ(parsed.at, at);
    }
}

TEST(Base62, ReadsAnyTextAsItsNumber) {
  Random random(65);
  int ids = 0;
  for (uint64_t i = 0; i < 100'000 * kEffort; ++i) {
    std::string text = written(random.any() >> random.below(64));
    for (uint64_t edits = random.below(4); edits > 0; --edits) {
      const auto c = static_cast<char>(random.percent(80) ? kAlphabet[random.below(62)]
                                                          : static_cast<char>(random.below(256)));
      const size_t at = random.below(text.size() + 1);
      if (random.percent(10))
        text.insert(at, 1, c);
      else if (at < text.size() && random.percent(10))
        text.erase(at, 1);
      else if (at < text.size())
        text[at] = c;
    }
    const auto parsed = read(text);
    const auto number = by_multiplication(text);
    ASSERT_EQ(parsed.error == NumeralError::none, number.has_value() && *number <= kGreatestId)
        << text;
    if (parsed.error != NumeralError::none) continue;
    ++ids;
    ASSERT_EQ(parsed.value, *number) << text;
    ASSERT_EQ(written(parsed.value), text) << "one spelling";
  }
  EXPECT_GT(ids, 1000);
}

}  // namespace
}  // namespace snowflake
