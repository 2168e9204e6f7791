// Finds databases of this server that mint the same ids: the same shard in the same region, in ids
// of the same form.
#pragma once

#include "pg/memory/database_state.hpp"

namespace snowflake::pg {

struct SameIds {
  const char* database;   // another one, or null if there is none
  uint32_t shard;         // of the state's layout
  const char* statement;  // separates the two

  bool found() const { return database != nullptr; }
};

// Compares what each database minted since the server started, and still may mint. Maps the memory
// of the others for this time.
SameIds find_same_ids(const DatabaseState& state);

// Logs it, for one database of a pair. Called when the limit was extended; it is cheap if the last
// check was a few seconds ago.
void check_same_ids(DatabaseState& state);

}  // namespace snowflake::pg
