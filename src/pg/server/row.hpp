// Rows of views: each value with the name of its column, in the order of the function's OUT
// parameters. A name that is not the one in SQL is an error, so none can stand in another's place.
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
  // Null where there is no text.
  Column(const char* column, const char* words)
      : name(column),
        value(words == nullptr ? 0 : CStringGetTextDatum(words)),
        null(words == nullptr) {}
};

// The row that a function with OUT parameters returns.
Datum row_of(FunctionCallInfo fcinfo, std::initializer_list<Column> columns);

// One row of a function that returns a set. REQUIRES InitMaterializedSRF().
void put_row(FunctionCallInfo fcinfo, std::initializer_list<Column> columns);

}  // namespace snowflake::pg
