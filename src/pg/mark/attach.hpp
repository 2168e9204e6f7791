// Attaches a session to the mark at the session's first call. Makes all checks before the session
// mints, step by step.
#pragma once

#include "pg/server/wait_budget.hpp"

namespace snowflake::pg {

// Attaches the session to the database's mark. Finds the mark and checks the seal, unless another
// session did both steps within the last second. Then attach() reads the mark. Adopts the mark if
// the mark is new to this server. The mark is not written. If the session is not attached
// afterwards, the caller must call attach() again. If `to_claim` is set and no lease covers the
// present time, waits or raises an error. A caller that only raises the mark needs no lease.
void attach(WaitBudget& budget, bool to_claim = true);

}  // namespace snowflake::pg
