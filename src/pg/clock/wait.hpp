#pragma once

#include <cstdint>

#include "core/shard.hpp"
#include "pg/server/wait_budget.hpp"

namespace snowflake::pg {

// Each wait function sleeps until the clock may have reached the awaited time, but at most 100 ms.
// The caller of a wait function must check the clock again after the sleep, because the clock may
// have been corrected during the sleep. A wait function raises an error at once if the total wait
// of the SQL call would exceed "snowflake.max_wait". A wait can be cancelled.

void wait_for_clock(uint32_t shard, Shard& counter, uint64_t position, uint64_t lead,
                    WaitBudget& budget);

// Waits while `position` is more than `lead` ticks (time units) ahead of the clock. The argument
// `position` (time and sequence number) is the first position whose ids are greater than `id`.
void wait_for_id(int64_t id, uint64_t position, uint64_t lead, WaitBudget& budget);

void wait_for_mark(int64_t mark_ms, WaitBudget& budget);

}  // namespace snowflake::pg
