/*
 * Mints for a while and looks at every id. The layout is the default one, "fleet", the region 0.
 *
 * The first of the shards is minted by other sessions as well, the rest by this session alone. That
 * no id comes twice follows from three things, each counted where it fails:
 *  - an id is of the shard that was asked for;
 *  - a session's ids of a shard go up, so those of a shard of its own differ;
 *  - of the shared shard each position is marked in memory that the sessions share. The marks are
 * those of the last SLOTS positions, four seconds; whoever finds a position marked, or marked by a
 * later round, has an id that another session had, or comes four seconds too late to know.
 */
#include "postgres.h"

#include <time.h>

#include "endure.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/shmem.h"
#include "utils/array.h"

#define SHARDS 256
#define SLOTS (1 << 22)

static pg_atomic_uint32* rounds = NULL;

Size endure_size(void) {
  return sizeof(*rounds) * SLOTS;
}

void start_endure(void) {
  bool found;

  rounds = ShmemInitStruct("snowflake_bench marks", endure_size(), &found);
  if (!found)
    for (int i = 0; i < SLOTS; ++i) pg_atomic_init_u32(&rounds[i], 0);
}

static bool is_marked(int64 id) {
  uint64 position = (uint64)id >> 23 << 10 | ((uint64)id & 1023);
  uint32 round = (uint32)(position / SLOTS) + 1;
  uint32 before = pg_atomic_exchange_u32(&rounds[position % SLOTS], round);

  return (int32)(round - before) <= 0 && before != 0;
}

PG_FUNCTION_INFO_V1(bench_endure);
Datum bench_endure(PG_FUNCTION_ARGS) {
  static int64 last[SHARDS];
  ArrayType* array = PG_GETARG_ARRAYTYPE_P(1);
  const int32* shards = (const int32*)ARR_DATA_PTR(array);
  int count = ARR_NDIM(array) == 1 && !ARR_HASNULL(array) ? ARR_DIMS(array)[0] : 0;
  FmgrInfo next_id;
  int64 ids = 0;
  int64 misplaced = 0;
  int64 descending = 0;
  int64 twice = 0;
  TupleDesc descriptor;
  Datum values[4];
  bool nulls[4] = {false};
  struct timespec now;
  double end;

  if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
    elog(ERROR, "return type must be a row type");
  for (int i = 0; i < count; ++i)
    if (shards[i] < 0 || shards[i] >= SHARDS) count = 0;
  if (count == 0)
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("the shards must be a plain array of numbers below %d", SHARDS)));
  fmgr_info(PG_GETARG_OID(0), &next_id);

  clock_gettime(CLOCK_MONOTONIC, &now);
  end = (double)now.tv_sec + (double)now.tv_nsec * 1e-9 + PG_GETARG_FLOAT8(2);
  do {
    for (int turn = 0; turn < 100; ++turn)
      for (int i = 0; i < count; ++i) {
        int shard = shards[i];
        int64 id = DatumGetInt64(FunctionCall1(&next_id, Int32GetDatum(shard)));

        if ((id >> 10 & 8191) != shard) ++misplaced;
        if (id <= last[shard]) ++descending;
        if (i == 0 && is_marked(id)) ++twice;
        last[shard] = id;
      }
    ids += 100 * (int64)count;
    CHECK_FOR_INTERRUPTS();
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while ((double)now.tv_sec + (double)now.tv_nsec * 1e-9 < end);
  values[0] = Int64GetDatum(ids);
  values[1] = Int64GetDatum(misplaced);
  values[2] = Int64GetDatum(descending);
  values[3] = Int64GetDatum(twice);
  PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(descriptor), values, nulls)));
}
