/*
 * Stop-watches: how long calls of an SQL function take, seen from a C loop in the backend.
 */
#include "postgres.h"

#include <time.h>

#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

static inline int64 clock_ns(clockid_t clock) {
  struct timespec t;

  clock_gettime(clock, &t);
  return t.tv_sec * INT64CONST(1000000000) + t.tv_nsec;
}

/* A function of one argument, and the arguments that it is called with in turn. */
typedef struct Target {
  FmgrInfo function;
  FunctionCallInfo call;
  int64* arguments;
  int count;
  int next;
} Target;

static void look_up(Target* target, Oid function, Oid collation) {
  fmgr_info(function, &target->function);
  if (target->function.fn_nargs != 1)
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("only functions of one argument can be measured")));
  target->call = palloc(SizeForFunctionCallInfo(1));
  InitFunctionCallInfoData(*target->call, &target->function, 1, collation, NULL, NULL);
  target->call->args[0].isnull = false;
}

static Target* target_of(FunctionCallInfo fcinfo) {
  Target* target = palloc0(sizeof(*target));
  ArrayType* array = PG_GETARG_ARRAYTYPE_P(1);

  if (ARR_NDIM(array) != 1 || ARR_HASNULL(array))
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("the arguments must be a plain array without nulls")));
  target->arguments = (int64*)ARR_DATA_PTR(array);
  target->count = ARR_DIMS(array)[0];
  look_up(target, PG_GETARG_OID(0), PG_GET_COLLATION());
  return target;
}

static inline void call(Target* target) {
  target->call->args[0].value = Int64GetDatum(target->arguments[target->next]);
  target->call->isnull = false;
  (void)FunctionCallInvoke(target->call);
  if (++target->next == target->count) target->next = 0;
}

PG_FUNCTION_INFO_V1(bench_cpu_ns);
Datum bench_cpu_ns(PG_FUNCTION_ARGS) {
  PG_RETURN_INT64(clock_ns(CLOCK_PROCESS_CPUTIME_ID));
}

PG_FUNCTION_INFO_V1(bench_once);
Datum bench_once(PG_FUNCTION_ARGS) {
  int64 argument = PG_GETARG_INT64(1);
  Target target = {.arguments = &argument, .count = 1};
  int64 start;

  /* A call in a statement finds its row of pg_proc in the cache: the parser has read it. */
  if (!SearchSysCacheExists1(PROCOID, PG_GETARG_DATUM(0)))
    ereport(ERROR, (errcode(ERRCODE_UNDEFINED_FUNCTION), errmsg("there is no such function")));
  start = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  look_up(&target, PG_GETARG_OID(0), PG_GET_COLLATION());
  call(&target);
  PG_RETURN_INT64(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - start);
}

PG_FUNCTION_INFO_V1(bench_rate);
Datum bench_rate(PG_FUNCTION_ARGS) {
  Target* target = target_of(fcinfo);
  int64 calls = 0;
  int64 start;
  int64 end;
  int64 now;
  int64 cpu;
  TupleDesc descriptor;
  Datum values[3];
  bool nulls[3] = {false};

  if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
    elog(ERROR, "return type must be a row type");
  for (int i = 0; i < target->count; ++i) call(target); /* what only first calls cost */
  while (GetCurrentTimestamp() < PG_GETARG_TIMESTAMPTZ(2)) CHECK_FOR_INTERRUPTS();

  cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  start = now = clock_ns(CLOCK_MONOTONIC);
  end = start + (int64)(PG_GETARG_FLOAT8(3) * 1e9);
  while (now < end) {
    for (int i = 0; i < 1000; ++i) call(target);
    calls += 1000;
    CHECK_FOR_INTERRUPTS();
    now = clock_ns(CLOCK_MONOTONIC);
  }
  values[0] = Int64GetDatum(calls);
  values[1] = Int64GetDatum(now - start);
  values[2] = Int64GetDatum(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu);
  PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(descriptor), values, nulls)));
}

/* Buckets of equal ratio: an octave has STEPS of them. Below STEPS a bucket is a nanosecond. */
#define STEPS 32
#define STEP_BITS 5
enum { BUCKETS = STEPS * 60 };

static inline int bucket_of(uint64 ns) {
  int octave;

  if (ns < STEPS) return (int)ns;
  octave = 63 - __builtin_clzll(ns) - STEP_BITS;
  return (octave << STEP_BITS) + (int)(ns >> octave);
}

static int64 end_of_bucket(int bucket) {
  int octave = bucket < 2 * STEPS ? 0 : bucket / STEPS - 1;

  return (((int64)(bucket - octave * STEPS) + 1) << octave) - 1;
}

PG_FUNCTION_INFO_V1(bench_latency);
Datum bench_latency(PG_FUNCTION_ARGS) {
  Target* target = target_of(fcinfo);
  uint64* histogram = palloc0(sizeof(uint64) * BUCKETS);
  ReturnSetInfo* result = (ReturnSetInfo*)fcinfo->resultinfo;
  int64 before;
  int64 end;

  InitMaterializedSRF(fcinfo, 0);
  call(target);
  before = clock_ns(CLOCK_MONOTONIC);
  end = before + (int64)(PG_GETARG_FLOAT8(2) * 1e9);
  while (before < end) {
    /* One reading ends a call and begins the next, so no moment escapes. */
    for (int i = 0; i < 1000; ++i) {
      int64 after;

      call(target);
      after = clock_ns(CLOCK_MONOTONIC);
      ++histogram[bucket_of((uint64)(after - before))];
      before = after;
    }
    CHECK_FOR_INTERRUPTS();
  }
  for (int i = 0; i < BUCKETS; ++i) {
    Datum values[2] = {Int64GetDatum(end_of_bucket(i)), Int64GetDatum((int64)histogram[i])};
    bool nulls[2] = {false};

    if (histogram[i] != 0) tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
  }
  return (Datum)0;
}
