// Checks whether ids may be minted under a mark, and sets the mark by hand.
#pragma once

#include <cstdint>

#include "core/blocker.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// Whether a rollback would remove the mark.
bool is_created_here(Relation mark);

// Why ids must not be minted under this relation, or none: a crash would lose it, or, in this
// transaction, a rollback would.
Blocker blocker_for_all(Relation mark);
Blocker blocker_here(Relation mark);
// Raises its error.
void check_mark(Relation mark);

// Sets the mark to `ms`, even if it is greater now, but not below what was written or adopted since
// the server started. Returns the new mark, which is durable.
int64_t set_mark(int64_t ms);

}  // namespace snowflake::pg
