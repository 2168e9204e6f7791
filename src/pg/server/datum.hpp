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

inline int64_t count_of(const std::atomic<uint64_t>& counter) {
  return static_cast<int64_t>(counter.load(std::memory_order_relaxed));
}

inline text* new_text(size_t length) {
  const auto result = static_cast<text*>(palloc(VARHDRSZ + length));
  SET_VARSIZE(result, VARHDRSZ + length);
  return result;
}

inline std::string_view text_view(const text* argument) {
  return {VARDATA_ANY(argument), static_cast<size_t>(VARSIZE_ANY_EXHDR(argument))};
}

// The row type of a function is cached, because the look-up takes several times as long as forming
// a row.
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

template <int columns>
Datum row_datum(FunctionCallInfo fcinfo, Datum (&values)[columns], bool (&nulls)[columns]) {
  const TupleDesc shape = row_shape(fcinfo);
  if (shape->natts != columns)
    elog(ERROR, "the SQL definition of the function does not match this version of the library");
  return HeapTupleGetDatum(heap_form_tuple(shape, values, nulls));
}

}  // namespace snowflake::pg
