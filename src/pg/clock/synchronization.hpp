// Implements snowflake.unsynchronized: minting waits until the kernel reports the clock as
// synchronized, or fails.
#pragma once

#include "pg/clock/wait.hpp"

namespace snowflake::pg {

// Whether minting must wait: the clock is not synchronized now, or, for wait_at_start, has not been
// since the server started.
bool lacks_synchronization();

// For wait_at_start, sleeps for a part of snowflake.max_wait, and raises an error after all of it.
// For refuse, raises the error at once. Interruptible.
void wait_for_synchronization(WaitBudget& budget);

}  // namespace snowflake::pg
