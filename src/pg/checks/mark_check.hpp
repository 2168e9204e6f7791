// Conditions on the mark for ids to be minted under it; and setting it by hand.
#pragma once

#include <cstdint>

#include "core/obstacle.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// A mark that a rollback would take away.
bool is_created_here(Relation mark);

// Why ids must not be minted under this relation, or none: a crash would lose it; or, for this
// transaction, a rollback.
Obstacle obstacle_for_all(Relation mark);
Obstacle obstacle_here(Relation mark);
// Raises its error.
void check_mark(Relation mark);

// Makes the mark `ms`, also where it is greater: but not less than what was written or adopted
// since the server started. Returns what it is now, which is durable.
int64_t set_mark(int64_t ms);

}  // namespace snowflake::pg
