#pragma once

#include <cstdint>

#include "core/blocker.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// Returns whether a rollback would remove the mark.
bool is_created_here(Relation mark);

// Returns the reason why ids must not be minted under this mark, or none. blocker_for_all() detects
// a mark that a crash would lose. blocker_here() also detects a mark that a rollback of this
// transaction would remove.
Blocker blocker_for_all(Relation mark);
Blocker blocker_here(Relation mark);
void check_mark(Relation mark);

// Sets the mark to `ms`, even if the present mark is later. The mark is never set below the
// greatest mark of this server run. Returns the new, durable mark.
int64_t set_mark(int64_t ms);

}  // namespace snowflake::pg
