#pragma once

#include <cstdint>

#include "core/blocker.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// Returns whether a rollback of this transaction would remove the high-water mark.
bool is_created_here(Relation mark);

// blocker_for_all() detects a high-water mark that a crash would lose. blocker_here() also detects
// a high-water mark that a rollback of this transaction would remove.
Blocker blocker_for_all(Relation mark);
Blocker blocker_here(Relation mark);
void check_mark(Relation mark);

// Sets the stored high-water mark of the database to the time `ms`, even if the stored time is
// later. The function set_mark() never sets a mark below the greatest mark of this server run.
// Returns the durable mark.
int64_t set_mark(int64_t ms);

}  // namespace snowflake::pg
