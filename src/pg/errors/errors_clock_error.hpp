#pragma once

#include <cstdint>

#include "core/clock_bounds.hpp"

namespace snowflake::pg {

[[noreturn]] void error_clock_unsynchronized(const ClockBounds& bounds);
[[noreturn]] void error_mint_unsynchronized(const ClockBounds& bounds, int64_t waited_ms);
// A commit that fails because of "snowflake.commit_wait" is counted as a refused call.
[[noreturn]] void error_commit_unsynchronized(const ClockBounds& bounds);
[[noreturn]] void error_commit_wait(int64_t id_ms, int64_t clock_ms, int64_t error_us,
                                    int64_t needed_ms, int64_t waited_ms);

}  // namespace snowflake::pg
