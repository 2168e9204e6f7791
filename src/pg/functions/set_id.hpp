#pragma once

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// Raises the error that the first row of the trigger's table would raise with these arguments.
// REQUIRES that the table is open.
void check_set_id(const char* const* arguments, int count, Relation relation);

}  // namespace snowflake::pg
