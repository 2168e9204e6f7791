#pragma once

#include "pg/server/wait_budget.hpp"

namespace snowflake::pg {

// Attaches the session to the database's mark, after all checks that must pass before the session
// mints. If the mark is new to this server, attach() raises the shard counters to the mark.
// attach() does not write the mark.
//
// The caller must call attach() again if the session is not attached afterwards. If `to_claim` is
// set and no lease covers the present time, attach() waits or raises an error. Raising the mark
// needs no lease.
void attach(WaitBudget& budget, bool to_claim = true);

}  // namespace snowflake::pg
