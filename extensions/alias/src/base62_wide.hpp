// Encodes numbers of up to 128 bits in base62, as texts of a fixed length.
#pragma once

#include "core/base62.hpp"

namespace snowflake {

__extension__ typedef unsigned __int128 Uint128;

inline constexpr size_t kMaxBase62Wide = 22;

// Writes `value` as a base62 text of `length` characters. REQUIRES length <= kMaxBase62Wide and
// value < 62^length. Ten characters are computed at a time, so that only few divisions need 128
// bits.
constexpr void write_base62_wide(Uint128 value, char* out, size_t length) noexcept {
  constexpr uint64_t kTen = 839299365868340224;  // 62^10
  while (length > 0) {
    auto low = static_cast<uint64_t>(value % kTen);
    value /= kTen;
    for (size_t i = 0; i < 10 && length > 0; ++i, low /= 62)
      out[--length] = detail::base62_symbol(static_cast<unsigned>(low % 62));
  }
}

struct ParsedWide {
  Uint128 value;
  NumeralError error;
  size_t at;
};

// Reads a base62 text of exactly `length` characters. REQUIRES that `length` is at most
// kMaxBase62Wide. A number above `greatest` is an error.
constexpr ParsedWide read_base62_wide(std::string_view text, size_t length,
                                      Uint128 greatest) noexcept {
  Uint128 head = 0;  // 21 digits, less than 2^128
  uint64_t last = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const uint8_t digit = detail::kBase62.digits[static_cast<uint8_t>(text[i])];
    if (digit == detail::kNoSymbol) return {0, NumeralError::symbol, i};
    head = head * 62 + last;
    last = digit;
  }
  if (text.size() != length) return {0, NumeralError::length, text.size()};
  if (last > greatest || head > (greatest - last) / 62) return {0, NumeralError::overflow, 0};
  return {head * 62 + last, NumeralError::none, 0};
}

}  // namespace snowflake
