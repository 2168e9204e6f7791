/*
 * Yardsticks: the least that a call, a clock read, an id and a decoder can cost in a C function, so
 * that the ratio to the physical limit is visible. None of them promises anything.
 */
#include "postgres.h"

#include <time.h>

#include "endure.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/uuid.h"

PG_MODULE_MAGIC;

#define SLOTS 8192
#define EPOCH_MS INT64CONST(1735689600000)

/* As in the product, a word has a cache line for itself. */
typedef struct Word {
  pg_atomic_uint64 last;
  char padding[56];
} Word;

static Word* words = NULL;
static shmem_request_hook_type previous_request_hook = NULL;
static shmem_startup_hook_type previous_startup_hook = NULL;

static void request_words(void) {
  if (previous_request_hook) previous_request_hook();
  RequestAddinShmemSpace(sizeof(Word) * SLOTS);
  RequestAddinShmemSpace(endure_size());
}

static void start_words(void) {
  bool found;

  if (previous_startup_hook) previous_startup_hook();
  LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
  words = ShmemInitStruct("snowflake_bench", sizeof(Word) * SLOTS, &found);
  if (!found)
    for (int i = 0; i < SLOTS; ++i) pg_atomic_init_u64(&words[i].last, 0);
  start_endure();
  LWLockRelease(AddinShmemInitLock);
}

void _PG_init(void);
void _PG_init(void) {
  if (!process_shared_preload_libraries_in_progress)
    ereport(ERROR, (errmsg("snowflake_bench must be loaded via shared_preload_libraries")));
  previous_request_hook = shmem_request_hook;
  shmem_request_hook = request_words;
  previous_startup_hook = shmem_startup_hook;
  shmem_startup_hook = start_words;
}

static inline int64 clock_ms(void) {
  struct timespec t;

  clock_gettime(CLOCK_REALTIME, &t);
  return t.tv_sec * INT64CONST(1000) + t.tv_nsec / 1000000;
}

PG_FUNCTION_INFO_V1(bench_counter);
Datum bench_counter(PG_FUNCTION_ARGS) {
  static int64 count = 0;

  PG_RETURN_INT64(++count);
}

PG_FUNCTION_INFO_V1(bench_clock);
Datum bench_clock(PG_FUNCTION_ARGS) {
  PG_RETURN_INT64(clock_ms());
}

PG_FUNCTION_INFO_V1(bench_id);
Datum bench_id(PG_FUNCTION_ARGS) {
  uint32 slot = (uint32)PG_GETARG_INT32(0) % SLOTS;
  pg_atomic_uint64* word = &words[slot].last;
  uint64 now = (uint64)(clock_ms() - EPOCH_MS) << 10;
  uint64 last = pg_atomic_read_u64(word);
  uint64 next;

  do next = Max(last + 1, now);
  while (!pg_atomic_compare_exchange_u64(word, &last, next));
  PG_RETURN_INT64((int64)(next >> 10 << 23 | (uint64)slot << 10 | (next & 1023)));
}

PG_FUNCTION_INFO_V1(bench_field);
Datum bench_field(PG_FUNCTION_ARGS) {
  PG_RETURN_INT32((PG_GETARG_INT64(0) >> 10) & 8191);
}

PG_FUNCTION_INFO_V1(bench_bytes);
Datum bench_bytes(PG_FUNCTION_ARGS) {
  pg_uuid_t* uuid = palloc(sizeof(*uuid));
  int64 id = PG_GETARG_INT64(0);

  memcpy(uuid->data, &id, sizeof(id));
  memcpy(uuid->data + 8, &id, sizeof(id));
  PG_RETURN_UUID_P(uuid);
}
