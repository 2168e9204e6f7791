#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <cstddef>
#include <cstdint>

namespace snowflake {

// The greatest bigint.
inline constexpr uint64_t kGreatestId = (uint64_t{1} << 63) - 1;

enum class NumeralError : uint8_t {
  none,
  symbol,  // `at`: offset of the character
  length,
  overflow,
  check,  // `at`: the check symbol's offset
};

struct ParsedNumeral {
  uint64_t value;
  NumeralError error;
  size_t at;
};

}  // namespace snowflake
