#pragma once

#include <cstdint>

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

bool can_be_key(Oid type);

// Raises an error if two texts of different bytes can be equal under the collation.
void require_deterministic(Oid collation);

// REQUIRES can_be_key(type) and 1 to layout.shards() shards. Raises errors for the collation.
int32_t shard_for_key(Datum key, Oid type, Oid collation, uint32_t shards);

}  // namespace snowflake::pg
