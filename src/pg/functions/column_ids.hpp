// The integers in a column of somebody's table.
#pragma once

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// Is called with one value of the column. A null comes with the value 0.
using Visit = void (*)(void* state, int64 value, bool null);

// Visits every value of a column that the caller may read, in the table and in what inherits from
// it. A table is scanned, without planning: that runs none of its owner's code. Of each table that
// share of the pages is read, in per cent. A view or a foreign table is read with the rights of its
// owner.
void visit_column(Oid relation, const char* column, double sample, Visit visit, void* state);

// Visits at least the least and the greatest value of a column, if it has any.
void visit_ends_of_column(Oid relation, const char* column, Visit visit, void* state);

}  // namespace snowflake::pg
