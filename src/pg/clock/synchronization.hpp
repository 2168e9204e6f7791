#pragma once

#include "pg/server/wait_budget.hpp"

namespace snowflake::pg {

// Returns whether minting must wait or fail because the clock is not synchronized. If
// "snowflake.unsynchronized" is wait_at_start, minting waits until the clock was synchronized once
// in this server run. With the value refuse of "snowflake.unsynchronized", no id is minted while
// the clock is not synchronized.
bool lacks_synchronization();

// If "snowflake.unsynchronized" is wait_at_start, each call of wait_for_synchronization() sleeps
// for up to 100 ms. When a statement has slept for "snowflake.max_wait", wait_for_synchronization()
// raises an error. If "snowflake.unsynchronized" is refuse, wait_for_synchronization() raises the
// error at once. The wait can be cancelled.
void wait_for_synchronization(WaitBudget& budget);

}  // namespace snowflake::pg
