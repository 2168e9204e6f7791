// Checks whether ids may be minted under a mark, and sets the mark by hand.
#pragma once

#include <cstdint>

#include "core/blocker.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// Whether a rollback would remove the mark.
bool is_created_here(Relation mark);

// Returns why ids must not be minted under this mark, or none. Either a crash would lose the mark,
// or a rollback of this transaction would.
Blocker blocker_for_all(Relation mark);
Blocker blocker_here(Relation mark);
// Raises the error of blocker_for_all(), if there is one.
void check_mark(Relation mark);

// Sets the mark to `ms`, even if the mark is greater now, but not below the greatest mark of this
// server run. Returns the new mark, which is durable.
int64_t set_mark(int64_t ms);

}  // namespace snowflake::pg
