#pragma once

#include "core/blocker.hpp"
#include "pg/server/wait_budget.hpp"

namespace snowflake::pg {

// Wakes the lease worker if the call needs a lease, and sleeps for at most 100 ms. Raises the error
// of `blocker` (the reason for the wait) if the call has already waited for "snowflake.max_wait".
// The wait can be cancelled.
void wait_for_lease(Blocker blocker, const Facts& facts, WaitBudget& budget);

}  // namespace snowflake::pg
