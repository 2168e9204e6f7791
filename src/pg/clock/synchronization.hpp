// Implements snowflake.unsynchronized: minting waits until the kernel reports the clock as
// synchronized, or fails.
#pragma once

#include "pg/server/wait_budget.hpp"

namespace snowflake::pg {

// Whether minting must wait. If the setting is refuse, minting must wait while the clock is not
// synchronized. If the setting is wait_at_start, minting must wait until the clock was synchronized
// once since the server started.
bool lacks_synchronization();

// With wait_at_start, sleeps for a part of snowflake.max_wait, or raises an error if the call has
// already waited for max_wait. With refuse, raises the error at once. Interruptible.
void wait_for_synchronization(WaitBudget& budget);

}  // namespace snowflake::pg
