#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <cstddef>
#include <cstdint>

namespace snowflake {

// The greatest value of PostgreSQL's type bigint.
inline constexpr uint64_t kGreatestId = (uint64_t{1} << 63) - 1;

enum class NumeralError : uint8_t {
  none,
  symbol,  // `at` is the offset of the invalid character
  length,
  overflow,
  check,  // `at` is the offset of the check symbol
};

struct ParsedNumeral {
  uint64_t value;
  NumeralError error;
  size_t at;
};

}  // namespace snowflake
