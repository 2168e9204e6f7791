// Finds databases of this server that mint the same ids: the same shard in the same region and
// layout.
#pragma once

#include "pg/memory/database_state.hpp"

namespace snowflake::pg {

struct SameIds {
  const char* database;
  uint32_t shard;
  const char* statement;  // makes the ids different

  bool found() const { return database != nullptr; }
};

// Compares the regions and shards in which the databases of this server have minted and may still
// mint.
SameIds find_same_ids(const DatabaseState& state);

// Logs two databases that mint the same ids, but searches only once in a few seconds.
void check_same_ids(DatabaseState& state);

}  // namespace snowflake::pg
