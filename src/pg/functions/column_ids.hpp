#pragma once

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// The value of a null is 0.
using Visit = void (*)(void* state, int64 value, bool null);

// Visits every value of a column that the caller may read, in the table and its child tables. The
// scan runs no code of the table's owner, because the scan is not planned. `sample` is the
// percentage of the pages of each table that is read. A view or a foreign table is read with the
// rights of its owner.
void visit_column(Oid relation, const char* column, double sample, Visit visit, void* state);

// Visits at least the smallest and the greatest value of a column that has values.
void visit_ends_of_column(Oid relation, const char* column, Visit visit, void* state);

}  // namespace snowflake::pg
