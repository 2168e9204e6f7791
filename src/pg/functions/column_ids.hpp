#pragma once

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// If the column is null in a row, `value` is 0.
using Visit = void (*)(void* state, int64 value, bool null);

// Visits every value of a column, also in child tables. The scan of the table is not planned, so no
// function of the table's owner runs. The argument `sample` is the percentage of pages that is
// read. A view or a foreign table is read by a query with the rights of its owner.
void visit_column(Oid relation, const char* column, double sample, Visit visit, void* state);

void visit_ends_of_column(Oid relation, const char* column, Visit visit, void* state);

}  // namespace snowflake::pg
