// Values and rows for SQL.
#pragma once

#include <atomic>

#include "pg/server/text.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

inline Datum interval_datum(int64_t us) {
  const auto interval = static_cast<Interval*>(palloc0(sizeof(Interval)));
  interval->time = us;
  return IntervalPGetDatum(interval);
}

inline Datum milliseconds_datum(int64_t us) {
  return Float8GetDatum(static_cast<double>(us) / 1000);
}

inline Datum timestamp_datum(int64_t unix_ms) {
  return TimestampTzGetDatum(timestamp_of_ms(unix_ms));
}

// The value of a shared counter as SQL's bigint.
inline int64_t count_of(const std::atomic<uint64_t>& counter) {
  return static_cast<int64_t>(counter.load(std::memory_order_relaxed));
}

// new_text() makes a text of `length` bytes, which the caller fills. text_view() returns the
// content of a text argument.
inline text* new_text(size_t length) {
  const auto result = static_cast<text*>(palloc(VARHDRSZ + length));
  SET_VARSIZE(result, VARHDRSZ + length);
  return result;
}

inline std::string_view text_view(const text* argument) {
  return {VARDATA_ANY(argument), static_cast<size_t>(VARSIZE_ANY_EXHDR(argument))};
}

// The row type of a function with OUT parameters. Finding the row type takes several times as long
// as forming a row. So the row type is cached while the query uses the function.
inline TupleDesc row_shape(FunctionCallInfo fcinfo) {
  FmgrInfo* const function = fcinfo->flinfo;
  if (function->fn_extra == nullptr) {
    const MemoryContext caller = MemoryContextSwitchTo(function->fn_mcxt);
    TupleDesc descriptor;
    if (get_call_result_type(fcinfo, nullptr, &descriptor) != TYPEFUNC_COMPOSITE)
      elog(ERROR, "the SQL definition of the function does not match this version of the library");
    function->fn_extra = BlessTupleDesc(descriptor);
    MemoryContextSwitchTo(caller);
  }
  return static_cast<TupleDesc>(function->fn_extra);
}

// Makes a row with few columns. row.hpp makes rows whose columns are set by name.
template <int columns>
Datum row_datum(FunctionCallInfo fcinfo, Datum (&values)[columns], bool (&nulls)[columns]) {
  const TupleDesc shape = row_shape(fcinfo);
  if (shape->natts != columns)
    elog(ERROR, "the SQL definition of the function does not match this version of the library");
  return HeapTupleGetDatum(heap_form_tuple(shape, values, nulls));
}

}  // namespace snowflake::pg
