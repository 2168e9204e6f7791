// Waiting for a region, or for more time of the one that is leased.
#pragma once

#include "pg/memory/lease.hpp"
#include "pg/clock/wait.hpp"

namespace snowflake::pg {

// Each sleeps a little and returns, having woken the worker where that can help; refuses where the
// call has waited for snowflake.max_wait. Interruptible.
void wait_for_region(WaitBudget& budget);
void wait_for_begin(const RegionHold& region, WaitBudget& budget);
void wait_for_lease(uint64_t position, WaitBudget& budget);

}  // namespace snowflake::pg
