// Waits for a region, or for a renewal of the leased region.
#pragma once

#include "core/blocker.hpp"
#include "pg/server/wait_budget.hpp"

namespace snowflake::pg {

// Wakes the lease worker if the worker can help, sleeps for a short time and returns. If the call
// has waited for snowflake.max_wait, raises the error of this blocker. Interruptible.
void wait_for_lease(Blocker blocker, const Facts& facts, WaitBudget& budget);

}  // namespace snowflake::pg
