// Base62 writes an id as eleven characters of 0-9A-Za-z. All base62 texts of ids have the same
// length, so the byte order of the texts is the order of the ids. Each number has only one spelling
// in base62.
#pragma once

#include <string_view>

#include "core/numeral.hpp"

namespace snowflake {

inline constexpr size_t kBase62Length = 11;

namespace detail {

inline constexpr uint8_t kNoSymbol = 0xFF;

constexpr char base62_symbol(unsigned digit) noexcept {
  return static_cast<char>(digit < 10   ? '0' + digit
                           : digit < 36 ? 'A' + digit - 10
                                        : 'a' + digit - 36);
}

struct Base62Tables {
  char pairs[62 * 62][2];
  uint8_t digits[256];
};

inline constexpr Base62Tables kBase62 = [] {
  Base62Tables tables{};
  for (auto& digit : tables.digits) digit = kNoSymbol;
  for (unsigned high = 0; high < 62; ++high) {
    tables.digits[static_cast<uint8_t>(base62_symbol(high))] = static_cast<uint8_t>(high);
    for (unsigned low = 0; low < 62; ++low) {
      tables.pairs[high * 62 + low][0] = base62_symbol(high);
      tables.pairs[high * 62 + low][1] = base62_symbol(low);
    }
  }
  return tables;
}();

constexpr void write_base62_pair(uint32_t value, char* out) noexcept {
  out[0] = kBase62.pairs[value][0];
  out[1] = kBase62.pairs[value][1];
}

}  // namespace detail

// Writes a number as eleven base62 digits. The function write_base62() first splits the eleven
// base62 digits into groups of 3, 4 and 4 digits, so that most divisions use 32-bit numbers. The
// processor can compute the three groups of base62 digits in parallel, because the groups do not
// depend on each other.
constexpr void write_base62(uint64_t value, char* out) noexcept {
  constexpr uint32_t kFour = 62 * 62 * 62 * 62;
  constexpr uint32_t kTwo = 62 * 62;
  const uint64_t upper = value / kFour;
  const auto low = static_cast<uint32_t>(value % kFour);
  const auto middle = static_cast<uint32_t>(upper % kFour);
  const auto high = static_cast<uint32_t>(upper / kFour);
  out[0] = detail::kBase62.pairs[high / kTwo][1];
  detail::write_base62_pair(high % kTwo, out + 1);
  detail::write_base62_pair(middle / kTwo, out + 3);
  detail::write_base62_pair(middle % kTwo, out + 5);
  detail::write_base62_pair(low / kTwo, out + 7);
  detail::write_base62_pair(low % kTwo, out + 9);
}

// Parses a base62 text of eleven characters. Returns NumeralError::overflow for a number above
// kGreatestId.
constexpr ParsedNumeral read_base62(std::string_view text) noexcept {
  uint64_t head = 0;  // value of the first ten base62 digits, less than 2^60
  uint64_t last = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const uint8_t digit = detail::kBase62.digits[static_cast<uint8_t>(text[i])];
    if (digit == detail::kNoSymbol) return {0, NumeralError::symbol, i};
    head = head * 62 + last;
    last = digit;
  }
  if (text.size() != kBase62Length) return {0, NumeralError::length, text.size()};
  if (head > (kGreatestId - last) / 62) return {0, NumeralError::overflow, 0};
  return {head * 62 + last, NumeralError::none, 0};
}

}  // namespace snowflake
