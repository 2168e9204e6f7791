// Checks whether ids may be minted under a mark, and sets the mark by hand.
#pragma once

#include <cstdint>

#include "core/blocker.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// Whether a rollback would remove the mark.
bool is_created_here(Relation mark);

// Returns why ids must not be minted under this mark, or none. A blocker means that a crash would
// lose the mark, or that a rollback of this transaction would remove the mark.
Blocker blocker_for_all(Relation mark);
Blocker blocker_here(Relation mark);
// Raises the error of the blocker from blocker_for_all(), if a blocker exists.
void check_mark(Relation mark);

// Sets the mark to `ms`, but never below the greatest mark of this server run. A greater present
// mark is lowered. Returns the new mark, which is durable.
int64_t set_mark(int64_t ms);

}  // namespace snowflake::pg
