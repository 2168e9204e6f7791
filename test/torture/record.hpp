// The clients' log: one record for every answer of a server that held ids, appended before the
// client asks for the next one. Binary, so that tens of millions of ids are a small matter.
#pragma once

#include <cstdint>
#include <ctime>

namespace torture {

inline constexpr uint32_t kMagic = 0x534e4f57;

enum Kind : uint32_t {
  kIds = 1,        // followed by `count` ids, in the order in which they were returned
  kCommitted = 2,  // the server acknowledged the commit of `transaction` of `session`
};

struct Record {
  uint32_t magic;
  uint32_t kind;
  uint32_t line;         // the line of history that the database belongs to, see check.cpp
  uint32_t session;      // of this client; a new one for each connection
  uint32_t transaction;  // of this session
  int32_t shard;         // that was asked for
  uint32_t count;
  uint32_t reserved;
  int64_t sent_ns;  // this host's monotonic clock, which no fault touches
  int64_t received_ns;
  int64_t clock_low_us;   // the server's own clock just before and after, in us since 1970;
  int64_t clock_high_us;  // 0 where it is not known
};
static_assert(sizeof(Record) == 64);

inline int64_t monotonic_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

}  // namespace torture
