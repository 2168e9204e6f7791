#pragma once

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// Raises an error if the arguments of a set_id() trigger are invalid for its table.
void check_set_id(const char* const* arguments, int count, Relation relation);

}  // namespace snowflake::pg
