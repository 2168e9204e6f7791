// Computes the shard of a key: the first 32 bits of the SHA-256 of the key as text, scaled to the
// number of shards.
//
// shard_for() must never change, because its result determines where rows are stored. A number is
// hashed as its decimal digits, and a UUID as its 36 characters in lower case. The number 5 and the
// text '5' therefore have the same shard. A client in any language can compute the shard of a key.
#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/sha256.hpp"

namespace snowflake {

// Returns the shard of a text key. The shard is the 32-bit hash of the key, multiplied by `shards`
// and divided by 2^32. If the number of shards is doubled, each shard is split into two adjacent
// shards.
constexpr uint32_t shard_for(std::string_view key, uint32_t shards) noexcept {
  return static_cast<uint32_t>(uint64_t{sha256(key)[0]} * shards >> 32);
}

inline uint32_t shard_for(int64_t key, uint32_t shards) noexcept {
  char text[20];
  size_t first = sizeof(text);
  uint64_t left = key < 0 ? -static_cast<uint64_t>(key) : static_cast<uint64_t>(key);
  do {
    text[--first] = static_cast<char>('0' + left % 10);
    left /= 10;
  } while (left != 0);
  if (key < 0) text[--first] = '-';
  return shard_for(std::string_view{text + first, sizeof(text) - first}, shards);
}

// Returns the shard of a UUID, whose sixteen bytes begin with the most significant byte.
inline uint32_t shard_for(const uint8_t (&uuid)[16], uint32_t shards) noexcept {
  constexpr char kDigits[] = "0123456789abcdef";
  char text[36];
  size_t length = 0;
  for (size_t i = 0; i < sizeof(uuid); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text[length++] = '-';
    text[length++] = kDigits[uuid[i] >> 4];
    text[length++] = kDigits[uuid[i] & 15];
  }
  return shard_for(std::string_view{text, length}, shards);
}

static_assert(shard_for("5", 256) == 0xef);  // sha256sum: ef2d127d...

}  // namespace snowflake
