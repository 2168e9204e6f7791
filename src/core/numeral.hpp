// The result of reading a number from text, for every text form.
#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <cstddef>
#include <cstdint>

namespace snowflake {

// The greatest id that a text form represents: ids are non-negative bigints.
inline constexpr uint64_t kGreatestId = (uint64_t{1} << 63) - 1;

enum class NumeralError : uint8_t {
  none,
  symbol,    // `at` is the offset in bytes of a character that is not a symbol of the form
  length,    // `at` is the number of symbols
  overflow,  // greater than the form can hold
  check,     // the check symbol does not match; `at` is its offset
};

struct ParsedNumeral {
  uint64_t value;
  NumeralError error;
  size_t at;
};

}  // namespace snowflake
