// A shard for a value of any type that shard_for() takes.
#pragma once

#include <cstdint>

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// Whether a column of this type can be a key: integers, uuid, text and varchar, and domains over
// them.
bool can_be_key(Oid type);

// REQUIRES can_be_key(type). Raises where equal texts need not have equal bytes, under the
// collation.
int32_t shard_for_key(Datum key, Oid type, Oid collation);

}  // namespace snowflake::pg
