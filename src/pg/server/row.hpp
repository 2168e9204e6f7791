// Builds rows of views. Each value of the row is passed with its column name, in the order of the
// function's OUT parameters. If a column name differs from the name of the OUT parameter, row_of()
// and put_row() raise an error.
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
  // A null pointer becomes the SQL value NULL.
  Column(const char* column, const char* words)
      : name(column),
        value(words == nullptr ? 0 : CStringGetTextDatum(words)),
        null(words == nullptr) {}
};

Datum row_of(FunctionCallInfo fcinfo, std::initializer_list<Column> columns);

// REQUIRES InitMaterializedSRF().
void put_row(FunctionCallInfo fcinfo, std::initializer_list<Column> columns);

}  // namespace snowflake::pg
