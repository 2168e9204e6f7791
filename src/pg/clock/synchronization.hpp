// Implements snowflake.unsynchronized: minting waits until the kernel reports the clock as
// synchronized, or fails.
#pragma once

#include "pg/clock/wait.hpp"

namespace snowflake::pg {

// Whether minting must wait. With refuse, this is so if the clock is not synchronized now. With
// wait_at_start, it is so if the clock was never synchronized since the server started.
bool lacks_synchronization();

// With wait_at_start, sleeps for a part of snowflake.max_wait, or raises an error if the call has
// already waited for max_wait. With refuse, raises the error at once. Interruptible.
void wait_for_synchronization(WaitBudget& budget);

}  // namespace snowflake::pg
