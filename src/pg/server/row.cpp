#include "pg/server/row.hpp"

namespace snowflake::pg {

namespace {

constexpr int kMost = 32;  // the greatest number of columns

struct Values {
  Datum values[kMost];
  bool nulls[kMost];
};

Values values_of(TupleDesc descriptor, std::initializer_list<Column> columns) {
  Values row{};
  int i = 0;
  for (const Column& column : columns) {
    if (i == kMost || i == descriptor->natts ||
        strcmp(NameStr(TupleDescAttr(descriptor, i)->attname), column.name) != 0)
      elog(ERROR, "column \"%s\" is at another position than in this version of the library",
           column.name);
    row.values[i] = column.value;
    row.nulls[i++] = column.null;
  }
  if (i != descriptor->natts)
    elog(ERROR, "the SQL definition of the function does not match this version of the library");
  return row;
}

}  // namespace

Datum row_of(FunctionCallInfo fcinfo, std::initializer_list<Column> columns) {
  TupleDesc const descriptor = row_shape(fcinfo);
  Values row = values_of(descriptor, columns);
  return HeapTupleGetDatum(heap_form_tuple(descriptor, row.values, row.nulls));
}

void put_row(FunctionCallInfo fcinfo, std::initializer_list<Column> columns) {
  const auto result = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
  Values row = values_of(result->setDesc, columns);
  tuplestore_putvalues(result->setResult, result->setDesc, row.values, row.nulls);
}

}  // namespace snowflake::pg
