#pragma once

#include <cstdint>

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

bool can_be_key(Oid type);

// Raises an error if the collation treats different texts as equal.
void require_deterministic(Oid collation);

// REQUIRES can_be_key(type), and 1 <= shards <= layout.shards().
int32_t shard_for_key(Datum key, Oid type, Oid collation, uint32_t shards);

}  // namespace snowflake::pg
