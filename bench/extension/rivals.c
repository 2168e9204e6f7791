/*
 * Keys that people choose instead, each as good as C makes it: random bytes are drawn from the
 * server's source for many keys at once, and what has an order within a moment keeps it within the
 * session.
 */
#include "postgres.h"

#include <time.h>

#include "fmgr.h"
#include "port/pg_bswap.h"
#include "utils/uuid.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/* Valid until the next call. */
static const unsigned char* random_bytes(int count) {
  static unsigned char pool[4096];
  static int left = 0;

  if (left < count) {
    if (!pg_strong_random(pool, sizeof(pool)))
      ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not generate random values")));
    left = sizeof(pool);
  }
  left -= count;
  return pool + left;
}

static int64 wall_ns(void) {
  struct timespec t;

  clock_gettime(CLOCK_REALTIME, &t);
  return t.tv_sec * INT64CONST(1000000000) + t.tv_nsec;
}

static text* text_of(int length, char** characters) {
  text* result = palloc(VARHDRSZ + length);

  SET_VARSIZE(result, VARHDRSZ + length);
  *characters = VARDATA(result);
  return result;
}

/*
 * UUID version 7 (RFC 9562), as the server has it from 18 on: 48 bits of milliseconds, 12 of the
 * rest of the time, which go up within the session, and 62 random ones.
 */
PG_FUNCTION_INFO_V1(bench_uuidv7);
Datum bench_uuidv7(PG_FUNCTION_ARGS) {
  enum { STEP_NS = 1000000 / 4096 + 1 };
  static int64 last_ns = 0;
  pg_uuid_t* uuid = palloc(sizeof(*uuid));
  int64 ns = wall_ns();
  uint64 time;

  if (ns < last_ns + STEP_NS) ns = last_ns + STEP_NS;
  last_ns = ns;
  time = (uint64)(ns / 1000000) << 16 | 0x7000 | (uint64)(ns % 1000000 * 4096 / 1000000);
  time = pg_hton64(time);
  memcpy(uuid->data, &time, 8);
  memcpy(uuid->data + 8, random_bytes(8), 8);
  uuid->data[8] = (uuid->data[8] & 0x3f) | 0x80;
  PG_RETURN_UUID_P(uuid);
}

/*
 * ULID: 48 bits of milliseconds and 80 random ones; within a millisecond the last one plus one,
 * which its specification calls monotonic.
 */
typedef struct Ulid {
  uint64 ms;
  uint64 high; /* 40 bits */
  uint64 low;  /* 40 bits */
} Ulid;

#define LOW_40 ((UINT64CONST(1) << 40) - 1)

static Ulid next_ulid(void) {
  static Ulid last = {0, 0, 0};
  uint64 ms = (uint64)(wall_ns() / 1000000);

  if (ms > last.ms) {
    const unsigned char* random = random_bytes(10);
    uint64 high = 0;
    uint64 low = 0;

    memcpy(&high, random, 5);
    memcpy(&low, random + 5, 5);
    last = (Ulid){ms, high & LOW_40, low & LOW_40};
  } else if (++last.low > LOW_40) {
    last.low = 0;
    if (++last.high > LOW_40)
      ereport(ERROR, (errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
                      errmsg("no ULID is left in this millisecond")));
  }
  return last;
}

PG_FUNCTION_INFO_V1(bench_ulid);
Datum bench_ulid(PG_FUNCTION_ARGS) {
  Ulid ulid = next_ulid();
  pg_uuid_t* uuid = palloc(sizeof(*uuid));
  uint64 first = pg_hton64(ulid.ms << 16 | ulid.high >> 24);
  uint64 second = pg_hton64(ulid.high << 40 | ulid.low);

  memcpy(uuid->data, &first, 8);
  memcpy(uuid->data + 8, &second, 8);
  PG_RETURN_UUID_P(uuid);
}

static void write_base32(uint64 value, int digits, char* out) {
  for (int i = digits - 1; i >= 0; --i, value >>= 5)
    out[i] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"[value & 31];
}

PG_FUNCTION_INFO_V1(bench_ulid_text);
Datum bench_ulid_text(PG_FUNCTION_ARGS) {
  Ulid ulid = next_ulid();
  char* out;
  text* result = text_of(26, &out);

  write_base32(ulid.ms, 10, out);
  write_base32(ulid.high, 8, out + 10);
  write_base32(ulid.low, 8, out + 18);
  PG_RETURN_TEXT_P(result);
}

/* KSUID: 32 bits of seconds since 2014-05-13, and 128 random ones. */
static void write_ksuid(unsigned char* out) {
  uint32 seconds = pg_hton32((uint32)(wall_ns() / 1000000000 - 1400000000));

  memcpy(out, &seconds, 4);
  memcpy(out + 4, random_bytes(16), 16);
}

PG_FUNCTION_INFO_V1(bench_ksuid);
Datum bench_ksuid(PG_FUNCTION_ARGS) {
  bytea* result = palloc(VARHDRSZ + 20);

  SET_VARSIZE(result, VARHDRSZ + 20);
  write_ksuid((unsigned char*)VARDATA(result));
  PG_RETURN_BYTEA_P(result);
}

/* 27 digits to the base of 62, five at a time. */
PG_FUNCTION_INFO_V1(bench_ksuid_text);
Datum bench_ksuid_text(PG_FUNCTION_ARGS) {
  enum { FIVE_DIGITS = 62 * 62 * 62 * 62 * 62 };
  unsigned char bytes[20];
  uint32 words[5];
  int first = 0;
  char* out;
  text* result = text_of(27, &out);

  write_ksuid(bytes);
  memcpy(words, bytes, sizeof(words));
  for (int i = 0; i < 5; ++i) words[i] = pg_ntoh32(words[i]);
  for (int end = 27; end > 0; end -= 5) {
    uint64 rest = 0;

    while (first < 4 && words[first] == 0) ++first;
    for (int i = first; i < 5; ++i) {
      rest = rest << 32 | words[i];
      words[i] = (uint32)(rest / FIVE_DIGITS);
      rest %= FIVE_DIGITS;
    }
    for (int i = end - 1; i >= Max(end - 5, 0); --i, rest /= 62)
      out[i] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"[rest % 62];
  }
  PG_RETURN_TEXT_P(result);
}

/* NanoID: 21 random characters out of 64, no time. Its 126 bits have no binary form but a UUID's.
 */
PG_FUNCTION_INFO_V1(bench_nanoid);
Datum bench_nanoid(PG_FUNCTION_ARGS) {
  const unsigned char* random = random_bytes(21);
  char* out;
  text* result = text_of(21, &out);

  for (int i = 0; i < 21; ++i)
    out[i] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz-"[random[i] & 63];
  PG_RETURN_TEXT_P(result);
}
