// Waiting for the clock.
#pragma once

#include <cstdint>

#include "core/shard.hpp"

namespace snowflake::pg {

// How long a call has waited for its next id, by the monotonic clock.
struct Patience {
  int64_t since_us = 0;  // 0: has not waited
};

// Sleeps until the clock may have come near enough to `position`, or part of the way: the clock can
// be corrected meanwhile. Refuses at once where the wait needed, with what was waited already, is
// more than snowflake.max_wait. Interruptible.
void wait_for_clock(uint32_t shard, Shard& word, uint64_t position, uint64_t lead,
                    Patience& patience);

}  // namespace snowflake::pg
