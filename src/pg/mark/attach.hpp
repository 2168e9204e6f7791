#pragma once

#include "pg/server/wait_budget.hpp"

namespace snowflake::pg {

// Makes all checks that must pass before a session mints, and attaches the session to the
// high-water mark (bind_mark()). If the high-water mark exceeds all marks that were read or written
// since server start, attach() raises the shard counters to the mark. The function attach() never
// writes the high-water mark.
//
// If the session is still not attached to the high-water mark when attach() returns, the caller
// must call attach() again. If `to_claim` is true (the caller mints) and no lease covers the
// present time, attach() waits or raises an error. Callers that only raise the high-water mark need
// no lease.
void attach(WaitBudget& budget, bool to_claim = true);

}  // namespace snowflake::pg
