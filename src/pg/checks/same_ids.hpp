// Finds databases of this server that mint the same ids: the same shard in the same region and
// layout.
#pragma once

#include "pg/memory/database_state.hpp"

namespace snowflake::pg {

struct SameIds {
  const char* database;
  uint32_t shard;
  const char* statement;  // an ALTER DATABASE statement that gives one of the databases another
                          // region or other shards

  bool found() const { return database != nullptr; }
};

// Finds another database of this server that mints in the same region and shard as the database of
// `state`.
SameIds find_same_ids(const DatabaseState& state);

// Searches at most once in a few seconds for two databases of this server that mint the same ids.
// Writes the names of both databases to the server log.
void check_same_ids(DatabaseState& state);

}  // namespace snowflake::pg
