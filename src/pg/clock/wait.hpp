// Waiting for the clock.
#pragma once

#include <cstdint>

#include "core/shard.hpp"
#include "pg/server/wait_budget.hpp"

namespace snowflake::pg {

// Each sleeps until the clock may have come near enough, or part of the way, for the clock can be
// corrected meanwhile. Refuses at once where the wait needed, with what was waited already, is more
// than snowflake.max_wait. Interruptible.

// For the shard's next position, which is more than `lead` ticks ahead.
void wait_for_clock(uint32_t shard, Shard& word, uint64_t position, uint64_t lead,
                    WaitBudget& budget);

// For a position above an id that was minted elsewhere and is more than `lead` ticks ahead.
void wait_for_id(int64_t id, uint64_t position, uint64_t lead, WaitBudget& budget);

// For a stored high-water mark that is more than max_lead ahead.
void wait_for_mark(int64_t mark_ms, WaitBudget& budget);

}  // namespace snowflake::pg
