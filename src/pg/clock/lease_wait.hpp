// Waiting for a region, or for more time of the one that is leased.
#pragma once

#include "core/obstacle.hpp"
#include "pg/clock/wait.hpp"

namespace snowflake::pg {

// Sleeps a little and returns, having woken the worker where that can help; refuses for this
// obstacle of the lease where the call has waited for snowflake.max_wait. Interruptible.
void wait_for_lease(Obstacle obstacle, const Facts& facts, WaitBudget& budget);

}  // namespace snowflake::pg
