// The result of reading a number from text, for every text form.
#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <cstddef>
#include <cstdint>

namespace snowflake {

// The greatest id that a text form can represent is the greatest bigint.
inline constexpr uint64_t kGreatestId = (uint64_t{1} << 63) - 1;

enum class NumeralError : uint8_t {
  none,
  symbol,  // `at` is the byte offset of a character that is not a symbol
  length,
  overflow,  // greater than the form can hold
  check,     // the check symbol does not match; `at` is the offset of the check symbol
};

struct ParsedNumeral {
  uint64_t value;
  NumeralError error;
  size_t at;
};

}  // namespace snowflake
