// Checks the arguments of a trigger that calls set_id().
#pragma once

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// Raises the error that the first row of the trigger's table would raise with these arguments. The
// table must be open.
void check_set_id(const char* const* arguments, int count, Relation relation);

}  // namespace snowflake::pg
