// Implements "snowflake.unsynchronized".
#pragma once

#include "pg/server/wait_budget.hpp"

namespace snowflake::pg {

// Returns whether minting must wait. With wait_at_start, minting waits until the clock was
// synchronized once in this server run. With refuse, minting waits whenever the clock is not
// synchronized.
bool lacks_synchronization();

// With wait_at_start, sleeps for a part of "snowflake.max_wait", or raises an error after max_wait.
// With refuse, raises the error at once. Interruptible.
void wait_for_synchronization(WaitBudget& budget);

}  // namespace snowflake::pg
