// Hash partitions by shard: the number that PostgreSQL turns into exactly the shard.
//
// For a key of one column PostgreSQL places a row by hash_combine64(0, h) % modulus, where h is
// what support function 2 of the operator class returns, and hash_combine64(0, h) is h plus a
// constant. So h = shard - constant puts shard s into remainder s % modulus.
#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <cstdint>

namespace snowflake {

// PostgreSQL's, from common/hashfn.h. Unchanged since 11; pg/functions/by_shard.cpp makes sure.
inline constexpr uint64_t kHashCombine64 = 0x49a0f4dd15e5a8e3;

constexpr uint64_t partition_hash(uint32_t shard) noexcept {
  return uint64_t{shard} - kHashCombine64;
}

}  // namespace snowflake
