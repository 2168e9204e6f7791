// Finds databases of this server that mint the same ids: the same shard in the same region, in ids
// of one form.
#pragma once

#include "pg/memory/database_state.hpp"

namespace snowflake::pg {

struct SameIds {
  const char* database;   // the other database; null if no other database mints the same ids
  uint32_t shard;         // a shard of the layout of `state`
  const char* statement;  // ALTER DATABASE statement after which the ids differ

  bool found() const { return database != nullptr; }
};

// Compares what each database minted since the server started, and what each database may still
// mint. During the call, the memory of all databases is mapped.
SameIds find_same_ids(const DatabaseState& state);

// Logs two databases that mint the same ids. Called when the limit was extended. The call is cheap
// if the last check was a few seconds ago.
void check_same_ids(DatabaseState& state);

}  // namespace snowflake::pg
