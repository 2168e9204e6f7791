#include "core/base32.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "support.hpp"

namespace snowflake {
namespace {

// Lists the characters that decode to each base32 symbol, from Crockford's definition.
const char* const kReadings[] = {"0oO", "1iIlL", "2",  "3",  "4",  "5",  "6",  "7",  "8",  "9",
                                 "aA",  "bB",    "cC", "dD", "eE", "fF", "gG", "hH", "jJ", "kK",
                                 "mM",  "nN",    "pP", "qQ", "rR", "sS", "tT", "vV", "wW", "xX",
                                 "yY",  "zZ",    "*",  "~",  "$",  "=",  "uU"};
constexpr std::string_view kWritten = "0123456789ABCDEFGHJKMNPQRSTVWXYZ*~$=U";

std::optional<unsigned> value_of(char c) {
  for (unsigned value = 0; value < std::size(kReadings); ++value)
    if (c != '\0' && std::strchr(kReadings[value], c) != nullptr) return value;
  return std::nullopt;
}

std::string written(uint64_t value) {
  char text[kBase32Length];
  write_base32(value, text);
  return {text, kBase32Length};
}

ParsedNumeral read(std::string_view text, bool check_symbol = false) {
  const std::vector<char> exact(text.begin(), text.end());  // without a spare byte
  return read_base32({exact.data(), exact.size()}, check_symbol);
}

std::string ulid(Wide value) {
  char text[kUlidLength];
  write_ulid(value, text);
  return {text, kUlidLength};
}

std::string by_division(unsigned __int128 value, size_t length) {
  std::string text;
  for (size_t i = 0; i < length; ++i, value /= 32)
    text.insert(text.begin(), kWritten[static_cast<size_t>(value % 32)]);
  return text;
}

TEST(Base32, KnownNumbers) {
  EXPECT_EQ(written(0), "0000000000000");
  EXPECT_EQ(written(31), "000000000000Z");
  EXPECT_EQ(written(1234), "000000000016J");
  EXPECT_EQ(written(kGreatestId), "7ZZZZZZZZZZZZ");
  EXPECT_EQ(written(~uint64_t{0}), "FZZZZZZZZZZZZ");
  EXPECT_EQ(base32_check_symbol(1234), 'D');
  for (uint64_t value = 0; value < 37; ++value)
    EXPECT_EQ(base32_check_symbol(value), kWritten[value]);
}

TEST(Base32, IsLongDivision) {
  Random random(32);
  for (uint64_t i = 0; i < 100'000 * kEffort; ++i) {
    const uint64_t value = random.any() >> random.below(64);
    ASSERT_EQ(written(value), by_division(value, 13)) << value;
    const Wide wide{random.any() >> random.below(64), random.any()};
    ASSERT_EQ(ulid(wide),
              by_division(static_cast<unsigned __int128>(wide.high) << 64 | wide.low, 26));
  }
}

TEST(Base32, SortsAsIdsDo) {
  Random random(33);
  for (uint64_t i = 0; i < 100'000 * kEffort; ++i) {
    const uint64_t a = random.any() >> random.below(64);
    const uint64_t b = random.percent(50) ? a + 1 : random.any() >> random.below(64);
    ASSERT_EQ(written(a) < written(b), a < b) << a << ' ' << b;
  }
}

TEST(Base32, ReadsEverySpelling) {
  Random random(34);
  for (uint64_t i = 0; i < 50'000 * kEffort; ++i) {
    const uint64_t value = random.any() >> random.between(1, 63);
    const bool check_symbol = random.percent(50);
    std::string text;
    for (const char c :
         written(value) + (check_symbol ? std::string(1, base32_check_symbol(value)) : "")) {
      while (random.percent(20)) text += '-';
      const char* const readings = kReadings[*value_of(c)];
      text += readings[random.below(std::strlen(readings))];
    }
    while (random.percent(20)) text += '-';
    const auto parsed = read(text, check_symbol);
    ASSERT_EQ(parsed.error, NumeralError::none) << text;
    ASSERT_EQ(parsed.value, value) << text;
  }
}

TEST(Base32, WrongLengths) {
  for (const char* text : {"", "-", "000000000000", "00000000000000", "0-0-0"}) {
    EXPECT_EQ(read(text).error, NumeralError::length) << text;
    const std::string symbols = text;
    EXPECT_EQ(read(text).at, static_cast<size_t>(std::count(symbols.begin(), symbols.end(), '0')));
  }
  EXPECT_EQ(read("0000000000000", true).error, NumeralError::length);
  EXPECT_EQ(read("0000000000000", true).at, 13u);
  EXPECT_EQ(read("000000000000000", true).error, NumeralError::length);
  EXPECT_EQ(read("00000000000000", true).error, NumeralError::none);
}

TEST(Base32, OverflowIsNotWrappedAround) {
  EXPECT_EQ(read("7ZZZZZZZZZZZZ").error, NumeralError::none);
  for (const char* text : {"8000000000000", "FZZZZZZZZZZZZ", "G000000000000", "ZZZZZZZZZZZZZ"})
    EXPECT_EQ(read(text).error, NumeralError::overflow) << text;
}

TEST(Base32, ReportsTheOffsetOfAnInvalidSymbol) {
  for (const bool check_symbol : {false, true})
    for (size_t at = 0; at < 13u + check_symbol; ++at)
      for (int c = 0; c < 256; ++c) {
        std::string text(13u + check_symbol, '0');
        text[at] = static_cast<char>(c);
        text.insert(0, "--");
        const auto value = value_of(static_cast<char>(c));
        const bool known = c == '-' || (value && (*value < 32 || at == 13));
        const auto parsed = read(text, check_symbol);
        ASSERT_EQ(parsed.error == NumeralError::symbol, !known) << text;
        ASSERT_TRUE(known || parsed.at == at + 2) << text;
      }
}

TEST(Base32, TheCheckSymbolDetectsMistakes) {
  Random random(35);
  for (uint64_t i = 0; i < 2'000 * kEffort; ++i) {
    const uint64_t value = random.any() >> random.between(1, 63);
    const std::string text = written(value) + base32_check_symbol(value);
    for (size_t at = 0; at < 14; ++at)
      for (unsigned other = 0; other < (at == 13 ? 37u : 32u); ++other) {
        std::string wrong = text;
        wrong[at] = kWritten[other];
        if (wrong == text) continue;
        const auto parsed = read(wrong, true);
        ASSERT_TRUE(parsed.error == NumeralError::check || parsed.error == NumeralError::overflow)
            << wrong << " for " << text;
      }
    for (size_t at = 0; at + 1 < 13; ++at) {
      std::string wrong = text;
      std::swap(wrong[at], wrong[at + 1]);
      ASSERT_TRUE(wrong == text || read(wrong, true).error != NumeralError::none) << wrong;
    }
  }
}

TEST(Base32, ReadsAnyTextAsItsNumber) {
  constexpr std::string_view likely = "0123456789ABCDEFGHJKMNPQRSTVWXYZabcxyzoilOIL-*~$=Uu";
  Random random(36);
  int ids = 0;
  for (uint64_t i = 0; i < 100'000 * kEffort; ++i) {
    const bool check_symbol = random.percent(50);
    std::string text;
    for (uint64_t length = random.between(11, 16); length > 0; --length)
      text += random.percent(98) ? likely[random.below(likely.size())]
                                 : static_cast<char>(random.below(256));
    if (random.percent(70)) text[0] = static_cast<char>('0' + random.below(8));

    std::vector<unsigned> values;
    bool foreign = false;
    for (const char c : text) {
      if (c == '-') continue;
      const auto value = value_of(c);
      foreign |= !value || (*value > 31 && !(check_symbol && values.size() == 13));
      values.push_back(value.value_or(0));
    }
    bool good = !foreign && values.size() == 13u + check_symbol;
    unsigned __int128 number = 0;
    for (size_t k = 0; good && k < 13; ++k) number = number * 32 + values[k];
    good = good && number <= kGreatestId && (!check_symbol || number % 37 == values[13]);

    const auto parsed = read(text, check_symbol);
    ASSERT_EQ(parsed.error == NumeralError::none, good) << text;
    if (!good) continue;
    ++ids;
    ASSERT_EQ(parsed.value, number) << text;
  }
  EXPECT_GT(ids, 100);
}

TEST(Ulid, ComesBack) {
  Random random(37);
  EXPECT_EQ(ulid({~uint64_t{0}, ~uint64_t{0}}), "7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
  // Reads the example ULID of the ULID specification.
  EXPECT_EQ(read_ulid("01ARZ3NDEKTSV4RRFFQ69G5FAV").value.high >> 16, 1469922850259u);
  for (uint64_t i = 0; i < 50'000 * kEffort; ++i) {
    const Wide value{random.any() >> random.below(64), random.any()};
    const auto parsed = read_ulid(ulid(value));
    ASSERT_EQ(parsed.error, NumeralError::none);
    ASSERT_EQ(parsed.value, value);
  }
}

TEST(Ulid, IsStrict) {
  EXPECT_EQ(read_ulid("8ZZZZZZZZZZZZZZZZZZZZZZZZZ").error, NumeralError::overflow);
  EXPECT_EQ(read_ulid("7ZZZZZZZZZZZZZZZZZZZZZZZZ").error, NumeralError::length);
  EXPECT_EQ(read_ulid("7ZZZZZZZZZZZZZZZZZZZZZZZZZ0").error, NumeralError::length);
  EXPECT_EQ(read_ulid("7ZZZZZZZZZZZZZZZZZZZZZZZZU").error, NumeralError::symbol);
  EXPECT_EQ(read_ulid("7ZZZZZZZZZZZZZZZZZZZZZZZZU").at, 25u);
}

}  // namespace
}  // namespace snowflake
