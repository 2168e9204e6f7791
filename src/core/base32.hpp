// Crockford's base32, https://www.crockford.com/base32.html, encodes five bits in each symbol and
// does not use the letters I, L, O and U. The base32 text of an id always has thirteen symbols, so
// texts sort in the order of ids. An optional check symbol at the end of a base32 text detects each
// wrong symbol and each swap of two symbols. The base32 parser accepts lower-case letters, the
// letter o for 0, the letters i and l for 1, and hyphens anywhere.
#pragma once

#include <string_view>

#include "core/numeral.hpp"

namespace snowflake {

inline constexpr size_t kBase32Length = 13;

// Stores a 128-bit integer, such as a UUID or a ULID, as two halves of 64 bits.
struct Wide {
  uint64_t high;
  uint64_t low;
  constexpr bool operator==(const Wide&) const noexcept = default;
};

namespace detail {

// The symbols *~$=U occur only as the check symbol at the end of a base32 text.
inline constexpr std::string_view kBase32Symbols = "0123456789ABCDEFGHJKMNPQRSTVWXYZ*~$=U";
inline constexpr uint8_t kNoBase32 = 0xFF;
inline constexpr uint8_t kHyphen = 0xFE;

struct Base32Values {
  uint8_t of[256];
};

inline constexpr Base32Values kBase32Values = [] {
  Base32Values values{};
  for (auto& value : values.of) value = kNoBase32;
  for (size_t i = 0; i < kBase32Symbols.size(); ++i) {
    const auto symbol = static_cast<uint8_t>(kBase32Symbols[i]);
    values.of[symbol] = static_cast<uint8_t>(i);
    if (symbol >= 'A' && symbol <= 'Z') values.of[symbol - 'A' + 'a'] = static_cast<uint8_t>(i);
  }
  // The base32 parser also accepts the letter O for 0, and I and L for 1. Each letter is converted
  // to uint8_t before it is used as an array index, because a char can be negative.
  for (const uint8_t zero : {uint8_t{'O'}, uint8_t{'o'}}) values.of[zero] = 0;
  for (const uint8_t one : {uint8_t{'I'}, uint8_t{'i'}, uint8_t{'L'}, uint8_t{'l'}})
    values.of[one] = 1;
  values.of[uint8_t{'-'}] = kHyphen;
  return values;
}();

struct ParsedBase32 {
  Wide value;     // the last 128 bits
  uint8_t first;  // value of the text's first symbol; if it is above 7, a ULID exceeds 128 bits
  uint8_t check;
  NumeralError error;
  size_t at;
};

// Parses a text of `length` base32 symbols. If `check_symbol` is true, a check symbol must follow
// the `length` symbols.
constexpr ParsedBase32 read_base32_symbols(std::string_view text, size_t length,
                                           bool check_symbol) noexcept {
  ParsedBase32 result{};
  size_t count = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const uint8_t value = kBase32Values.of[static_cast<uint8_t>(text[i])];
    if (value == kHyphen) continue;
    const bool is_check = check_symbol && count == length;
    if (value == kNoBase32 || (value >= 32 && !is_check)) {
      result.error = NumeralError::symbol;
      result.at = i;
      return result;
    }
    if (is_check) {
      result.check = value;
      result.at = i;
    } else if (count < length) {
      if (count == 0) result.first = value;
      result.value = {result.value.high << 5 | result.value.low >> 59,
                      result.value.low << 5 | value};
    }
    ++count;
  }
  if (count != length + (check_symbol ? 1 : 0)) {
    result.error = NumeralError::length;
    result.at = count;
  }
  return result;
}

// Parses a base32 text of thirteen symbols without hyphens, the usual form of an id. Returns false
// if one of the thirteen characters is not a base32 symbol. Thirteen base32 symbols contain 65
// bits. The argument `value` receives the lower 64 of the 65 bits, and `carry` receives the highest
// bit.
constexpr bool read_thirteen(const char* text, uint64_t* value, uint8_t* carry) noexcept {
  uint8_t seen = 0;
  *carry = kBase32Values.of[static_cast<uint8_t>(text[0])] >> 4;
  for (size_t i = 0; i < kBase32Length; ++i) {
    const uint8_t digit = kBase32Values.of[static_cast<uint8_t>(text[i])];
    seen |= digit;
    *value = *value << 5 | digit;
  }
  return seen < 32;
}

}  // namespace detail

// Writes a 64-bit number as thirteen base32 symbols.
constexpr void write_base32(uint64_t value, char* out) noexcept {
  for (size_t i = kBase32Length; i-- > 0; value >>= 5) out[i] = detail::kBase32Symbols[value & 31];
}

constexpr char base32_check_symbol(uint64_t value) noexcept {
  return detail::kBase32Symbols[value % 37];
}

// Parses a base32 text of thirteen symbols. If `check_symbol` is true, a correct check symbol must
// follow the thirteen symbols.
constexpr ParsedNumeral read_base32(std::string_view text, bool check_symbol) noexcept {
  uint64_t plain = 0;
  uint8_t carry = 0;
  if (!check_symbol && text.size() == kBase32Length &&
      detail::read_thirteen(text.data(), &plain, &carry)) {
    if (carry != 0 || plain > kGreatestId) return {0, NumeralError::overflow, 0};
    return {plain, NumeralError::none, 0};
  }
  const auto parsed = detail::read_base32_symbols(text, kBase32Length, check_symbol);
  if (parsed.error != NumeralError::none) return {0, parsed.error, parsed.at};
  if (parsed.value.high != 0 || parsed.value.low > kGreatestId)
    return {0, NumeralError::overflow, 0};
  if (check_symbol && parsed.value.low % 37 != parsed.check)
    return {parsed.value.low, NumeralError::check, parsed.at};
  return {parsed.value.low, NumeralError::none, 0};
}

// A ULID, https://github.com/ulid/spec, is written as 128 bits in 26 symbols. The first symbol of a
// ULID is at most 7.
inline constexpr size_t kUlidLength = 26;

constexpr void write_ulid(Wide value, char* out) noexcept {
  write_base32(value.high >> 1, out);
  write_base32(value.low, out + kBase32Length);
  out[kBase32Length] = detail::kBase32Symbols[(value.high & 1) << 4 | value.low >> 60];
}

struct ParsedUlid {
  Wide value;
  NumeralError error;
  size_t at;
};

constexpr ParsedUlid read_ulid(std::string_view text) noexcept {
  Wide plain{};
  uint8_t above = 0;
  uint8_t carry = 0;
  if (text.size() == kUlidLength && detail::read_thirteen(text.data(), &plain.high, &above) &&
      detail::read_thirteen(text.data() + kBase32Length, &plain.low, &carry)) {
    if (above != 0 || plain.high >> 63 != 0) return {{}, NumeralError::overflow, 0};
    return {{plain.high << 1 | carry, plain.low}, NumeralError::none, 0};
  }
  const auto parsed = detail::read_base32_symbols(text, kUlidLength, false);
  if (parsed.error != NumeralError::none) return {{}, parsed.error, parsed.at};
  if (parsed.first > 7) return {{}, NumeralError::overflow, 0};
  return {parsed.value, NumeralError::none, 0};
}

}  // namespace snowflake
