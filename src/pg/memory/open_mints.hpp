// Records the tick of the first id of each open transaction that has minted. Each backend has a
// slot in the state of its database, and readers search all slots. The protocol is in
// core/settled.hpp.
#pragma once

#include "core/settled.hpp"
#include "pg/memory/database_state.hpp"

namespace snowflake::pg {

extern MintRecord mint_record;

// Returns the session's slot, in which the caller must record the first mint of the transaction.
OpenMints& own_mint_slot();

// Leaves the slot, because the session will use another state from now on.
void leave_mint_slot();

// Closes the slot after the transaction has ended and later snapshots include its result. A session
// that ends within a transaction first rolls back, while the slot is still mapped. In callbacks of
// on_shmem_exit(), the slot may be unmapped.
void end_open_mints();

// Finds the open transaction of a database that minted first. `since` is OpenMints::kNone if no
// open transaction has minted.
struct OldestMint {
  uint64_t since;
  int pid;
};
OldestMint oldest_open_mint(const DatabaseState& state);

}  // namespace snowflake::pg
