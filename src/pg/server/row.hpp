// Rows of views. Each value is added with the name of its column, in the order of the function's
// OUT parameters. If a column name differs from the SQL declaration, an error is raised. So no
// value can be in the wrong column.
#pragma once

#include <initializer_list>

#include "pg/server/datum.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

struct Column {
  const char* name;
  Datum value;
  bool null;

  Column(const char* column, Datum datum, bool is_null = false)
      : name(column), value(datum), null(is_null) {}
  // NULL for a null pointer.
  Column(const char* column, const char* words)
      : name(column),
        value(words == nullptr ? 0 : CStringGetTextDatum(words)),
        null(words == nullptr) {}
};

// The row that a function with OUT parameters returns.
Datum row_of(FunctionCallInfo fcinfo, std::initializer_list<Column> columns);

// Adds one row to the result of a function that returns a set. REQUIRES InitMaterializedSRF().
void put_row(FunctionCallInfo fcinfo, std::initializer_list<Column> columns);

}  // namespace snowflake::pg
