// Times and layouts as people read them, in the current memory context.
#pragma once

#include "core/layout.hpp"

namespace snowflake::pg {

// Milliseconds since 1970 as a timestamptz value (microseconds since 2000), and as text in the
// session's time zone.
inline constexpr int64_t kPostgresEpochMs = 946684800000;
constexpr int64_t timestamp_of_ms(int64_t unix_ms) {
  return (unix_ms - kPostgresEpochMs) * 1000;
}
const char* time_text(int64_t unix_ms);

// "41/13/10, tick 1 ms, epoch 2025-01-01 00:00:00+00"
const char* layout_bits_text(const Layout& layout);
const char* layout_text(const Layout& layout);

}  // namespace snowflake::pg
