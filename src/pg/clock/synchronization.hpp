// Implements "snowflake.unsynchronized".
#pragma once

#include "pg/server/wait_budget.hpp"

namespace snowflake::pg {

// Returns whether minting must wait or fail. With the setting wait_at_start, minting waits until
// the kernel has reported a synchronized clock once in this server run. With the setting refuse, no
// id is minted while the clock is not synchronized.
bool lacks_synchronization();

// With the setting wait_at_start, sleeps for at most 100 ms, and raises an error after
// "snowflake.max_wait". With the setting refuse, raises the error at once. Interruptible.
void wait_for_synchronization(WaitBudget& budget);

}  // namespace snowflake::pg
