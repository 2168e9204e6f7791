// Finds databases of this server that mint the same ids: the same shard in the same region and
// layout.
#pragma once

#include "pg/memory/database_state.hpp"

namespace snowflake::pg {

struct SameIds {
  const char* database;   // null if no other database mints the same ids
  uint32_t shard;         // a shard of the layout of `state`
  const char* statement;  // ALTER DATABASE statement after which the ids differ

  bool found() const { return database != nullptr; }
};

// Compares the ids that each database has minted in this server run and may still mint. During the
// call, the memory of all databases is mapped.
SameIds find_same_ids(const DatabaseState& state);

// Logs two databases that mint the same ids, at most once in a few seconds.
void check_same_ids(DatabaseState& state);

}  // namespace snowflake::pg
