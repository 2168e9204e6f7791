// Defines the format of the clients' logs. The client appends the ids of each result to its log
// before it sends the next request. The format is binary, because a run has tens of millions of
// ids.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>

namespace torture {

inline constexpr uint32_t kMagic = 0x534e4f57;

enum Kind : uint32_t {
  kIds = 1,        // `count` ids follow
  kCommitted = 2,  // COMMIT of `transaction` was acknowledged
  kRefused = 3,    // only the error `state`
};

struct Record {
  uint32_t magic;
  uint32_t kind;
  uint32_t line;         // line of history
  uint32_t session;      // number of the connection
  uint32_t transaction;  // number in its session
  int32_t shard;         // the requested shard
  uint32_t count;
  uint32_t state;   // the SQLSTATE of an error
  int64_t sent_ns;  // monotonic clock of the host
  int64_t received_ns;
  // The server's clock just before and after the id was minted, in microseconds since 1970; 0 if
  // unknown.
  int64_t clock_low_us;
  int64_t clock_high_us;
};
static_assert(sizeof(Record) == 64);

// Packs an SQLSTATE into 30 bits, as PostgreSQL does.
inline uint32_t pack_state(const std::string& state) {
  uint32_t packed = 0;
  for (size_t i = 0; i < 5 && i < state.size(); ++i)
    packed |= static_cast<uint32_t>((state[i] - '0') & 0x3F) << (6 * i);
  return packed;
}
inline std::string unpack_state(uint32_t packed) {
  std::string state;
  for (int i = 0; i < 5; ++i) state += static_cast<char>('0' + (packed >> (6 * i) & 0x3F));
  return state;
}

inline int64_t monotonic_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

}  // namespace torture
