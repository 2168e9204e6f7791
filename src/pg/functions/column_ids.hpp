// Reads the integers in a column of any role's table.
#pragma once

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// Called with each value of the column. For a null, `value` is 0 and `is_null` is true.
using Visit = void (*)(void* state, int64 value, bool null);

// Visits every value of a column that the caller may read, in the table and in the child tables of
// the table. The function scans tables without planning. A scan without planning runs no code of
// the table's owner. `percent` is the share of the pages of each table that is read. The function
// reads a view or a foreign table with the rights of the owner of the view or the foreign table.
void visit_column(Oid relation, const char* column, double sample, Visit visit, void* state);

// Visits at least the smallest and the greatest value of a column that has values.
void visit_ends_of_column(Oid relation, const char* column, Visit visit, void* state);

}  // namespace snowflake::pg
