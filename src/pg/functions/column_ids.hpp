#pragma once

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// If the column is null in a row, `value` is 0.
using Visit = void (*)(void* state, int64 value, bool null);

// Visits every value of a column, also in child tables. Tables are read without a query, because
// planning a query could run functions of the table's owner. The argument `sample` is the
// percentage of pages that is read. To read a view or a foreign table, visit_column() runs a query
// as the owner of the view or foreign table.
void visit_column(Oid relation, const char* column, double sample, Visit visit, void* state);

void visit_ends_of_column(Oid relation, const char* column, Visit visit, void* state);

}  // namespace snowflake::pg
