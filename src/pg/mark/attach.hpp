// Attaches a session to the mark at its first call: all checks before the session mints, step by
// step.
#pragma once

#include "pg/server/wait_budget.hpp"

namespace snowflake::pg {

// Takes hold of the database's mark: finds it and checks the seal, unless another session did both
// within a second, reads it, and adopts it if it is new to this server. The mark is not written.
// The hold may not be good afterwards: call again. `to_claim`: without a lease that covers the
// present, waits or refuses; who only raises the mark needs none.
void attach(WaitBudget& budget, bool to_claim = true);

}  // namespace snowflake::pg
