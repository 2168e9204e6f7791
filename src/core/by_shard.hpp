// Computes the hash with which PostgreSQL puts a row into the hash partition of its shard.
//
// For a key of one column, PostgreSQL computes the partition as hash_combine64(0, h) % modulus. The
// hash h is the result of support function 2 of the operator class, and hash_combine64(0, h) adds a
// constant to h. The function partition_hash() subtracts the constant of hash_combine64() from the
// shard, so that hash_combine64(0, h) is the shard. Shard s is therefore in the partition with
// remainder s % modulus.
#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <cstdint>

namespace snowflake {

// kHashCombine64 is the constant of hash_combine64() in PostgreSQL's common/hashfn.h, which has not
// changed since PostgreSQL 11. The file pg/functions/shard_hash.cpp checks that PostgreSQL uses the
// constant kHashCombine64.
inline constexpr uint64_t kHashCombine64 = 0x49a0f4dd15e5a8e3;

constexpr uint64_t partition_hash(uint32_t shard) noexcept {
  return uint64_t{shard} - kHashCombine64;
}

}  // namespace snowflake
