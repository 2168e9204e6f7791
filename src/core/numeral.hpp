// The outcome of reading a number from text: the same for every text form.
#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <cstddef>
#include <cstdint>

namespace snowflake {

// Text forms stand for ids: what a bigint holds that is not negative.
inline constexpr uint64_t kGreatestId = (uint64_t{1} << 63) - 1;

enum class NumeralError : uint8_t {
  none,
  symbol,    // `at` is the offset, in bytes, of something that is no symbol of the form
  length,    // `at` is how many symbols there are
  overflow,  // greater than the form holds
  check,     // the check symbol is another number's; `at` is its offset
};

struct ParsedNumeral {
  uint64_t value;
  NumeralError error;
  size_t at;
};

}  // namespace snowflake
