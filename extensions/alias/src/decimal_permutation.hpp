// A keyed permutation of numbers with a fixed count of decimal digits: FF1 of NIST SP 800-38G with
// radix 10 and an empty tweak. The caller provides this pseudorandom function:
//
//     Uint128 round_function(unsigned round, uint64_t half)
//
// FF1 splits the digits of a number into two halves of at most ten digits. The pseudorandom
// function must return an integer of 12 bytes if the permuted number has 19 digits, and otherwise
// of 8 bytes. NIST SP 800-38G names the returned number NUM(S).
#pragma once

#include <string_view>

#include "base62_wide.hpp"
#include "core/numeral.hpp"

namespace snowflake {

// A number has at least six digits, because FF1 requires at least a million different numbers.
// Nineteen digits are enough for every id.
inline constexpr unsigned kMinDecimalDigits = 6;
inline constexpr unsigned kMaxDecimalDigits = 19;

constexpr uint64_t power_of_ten(unsigned exponent) noexcept {
  uint64_t power = 1;
  while (exponent-- > 0) power *= 10;
  return power;
}

namespace detail {

inline constexpr unsigned kDecimalRounds = 10;

// Even rounds of the cipher FF1 change the leading digits of the number (the upper half). If the
// number of digits is odd, the upper half is shorter.
struct DecimalHalves {
  uint64_t upper, lower;  // the number in each half

  constexpr explicit DecimalHalves(unsigned digits) noexcept
      : upper(power_of_ten(digits / 2)), lower(power_of_ten(digits - digits / 2)) {}
  constexpr uint64_t changed_in(unsigned round) const noexcept {
    return round % 2 == 0 ? upper : lower;
  }
};

}  // namespace detail

// permute_decimal() and unpermute_decimal() REQUIRE kMinDecimalDigits <= digits <=
// kMaxDecimalDigits and value < 10^digits.
template <class RoundFunction>
constexpr uint64_t permute_decimal(uint64_t value, unsigned digits,
                                   RoundFunction&& round_function) noexcept {
  const detail::DecimalHalves halves(digits);
  uint64_t a = value / halves.lower;
  uint64_t b = value % halves.lower;
  for (unsigned round = 0; round < detail::kDecimalRounds; ++round) {
    const uint64_t size = halves.changed_in(round);
    const uint64_t c = (a + static_cast<uint64_t>(round_function(round, b) % size)) % size;
    a = b;
    b = c;
  }
  return a * halves.lower + b;
}

template <class RoundFunction>
constexpr uint64_t unpermute_decimal(uint64_t permuted, unsigned digits,
                                     RoundFunction&& round_function) noexcept {
  const detail::DecimalHalves halves(digits);
  uint64_t a = permuted / halves.lower;
  uint64_t b = permuted % halves.lower;
  for (unsigned round = detail::kDecimalRounds; round-- > 0;) {
    const uint64_t size = halves.changed_in(round);
    const uint64_t c = b;
    b = a;
    a = (c + size - static_cast<uint64_t>(round_function(round, b) % size)) % size;
  }
  return a * halves.lower + b;
}

// Writes `value` as `length` decimal digits. REQUIRES value < 10^length.
constexpr void write_decimal(uint64_t value, char* out, size_t length) noexcept {
  for (; length > 0; value /= 10) out[--length] = static_cast<char>('0' + value % 10);
}

// Parses a text of exactly `length` digits, at most nineteen, so that 64 bits cannot overflow.
constexpr ParsedNumeral read_decimal(std::string_view text, size_t length) noexcept {
  uint64_t value = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] < '0' || text[i] > '9') return {0, NumeralError::symbol, i};
    value = value * 10 + static_cast<uint64_t>(text[i] - '0');
  }
  if (text.size() != length) return {0, NumeralError::length, text.size()};
  return {value, NumeralError::none, 0};
}

}  // namespace snowflake
