// Base62 of more than 64 bits, in as many characters as the caller says. As strict as base62.hpp.
#pragma once

#include "core/base62.hpp"

namespace snowflake {

__extension__ typedef unsigned __int128 Uint128;

// Writes `length` characters; REQUIRES value < 62^length.
constexpr void write_base62_wide(Uint128 value, char* out, size_t length) noexcept {
  for (size_t i = length; i-- > 0; value /= 62)
    out[i] = detail::base62_symbol(static_cast<unsigned>(value % 62));
}

struct ParsedWide {
  Uint128 value;
  NumeralError error;
  size_t at;
};

// Reads exactly `length` characters; numbers above `greatest` overflow.
constexpr ParsedWide read_base62_wide(std::string_view text, size_t length,
                                      Uint128 greatest) noexcept {
  Uint128 value = 0;
  bool overflow = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const uint8_t digit = detail::kBase62.digits[static_cast<uint8_t>(text[i])];
    if (digit == detail::kNoSymbol) return {0, NumeralError::symbol, i};
    overflow = overflow || digit > greatest || value > (greatest - digit) / 62;
    value = value * 62 + digit;
  }
  if (text.size() != length) return {0, NumeralError::length, text.size()};
  if (overflow) return {0, NumeralError::overflow, 0};
  return {value, NumeralError::none, 0};
}

}  // namespace snowflake
