// snowflake.unsynchronized: whether the kernel's word is asked for before anything is minted.
#pragma once

#include "pg/clock/wait.hpp"

namespace snowflake::pg {

// Whether minting is to wait: the clock is not synchronized now, or, for wait_at_start, has not
// been since the server started.
bool lacks_synchronization();

// For wait_at_start sleeps a part of snowflake.max_wait; an error where that is over, and for
// refuse at once. Interruptible.
void wait_for_synchronization(WaitBudget& budget);

}  // namespace snowflake::pg
