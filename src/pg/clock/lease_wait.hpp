#pragma once

#include "core/blocker.hpp"
#include "pg/server/wait_budget.hpp"

namespace snowflake::pg {

// Wakes the lease worker if a lease is needed, sleeps for a short time and returns. Raises the
// error of the blocker if the call has waited for "snowflake.max_wait". Interruptible.
void wait_for_lease(Blocker blocker, const Facts& facts, WaitBudget& budget);

}  // namespace snowflake::pg
