// Waits for the clock.
#pragma once

#include <cstdint>

#include "core/shard.hpp"
#include "pg/server/wait_budget.hpp"

namespace snowflake::pg {

// Each call sleeps until the clock may have reached its target, or for a part of that time, because
// the clock can be corrected during the wait. If the needed wait and the time already waited exceed
// snowflake.max_wait, it raises an error at once. Interruptible.

// For the shard's next position, which is more than `lead` ticks ahead.
void wait_for_clock(uint32_t shard, Shard& counter, uint64_t position, uint64_t lead,
                    WaitBudget& budget);

// For a position above an id that was minted elsewhere and is more than `lead` ticks ahead.
void wait_for_id(int64_t id, uint64_t position, uint64_t lead, WaitBudget& budget);

// For a stored high-water mark that is more than max_lead ahead.
void wait_for_mark(int64_t mark_ms, WaitBudget& budget);

}  // namespace snowflake::pg
