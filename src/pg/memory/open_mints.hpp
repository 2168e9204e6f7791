// Records for each open transaction that has minted the tick of its first id. Each backend has a
// slot in the state of its database, and readers of the cursor search all slots. The protocol is in
// core/settled.hpp.
#pragma once

#include "core/settled.hpp"
#include "pg/memory/database_state.hpp"

namespace snowflake::pg {

// The record of this session's transaction.
extern MintRecord mint_record;

// Returns the session's slot in the state to which the session is attached. The caller writes its
// record into the slot.
OpenMints& own_mint_slot();

// Leaves the slot, because the session will use another state from now on.
void leave_mint_slot();

// Closes the slot after the transaction has ended and later snapshots include its result. A session
// that ends within a transaction first rolls it back. At that time PostgreSQL still maps the slot,
// unlike in callbacks of on_shmem_exit().
void end_open_mints();

// Finds the open transaction of a database that minted first. Without one, `since` is
// OpenMints::kNone.
struct OldestMint {
  uint64_t since;
  int pid;
};
OldestMint oldest_open_mint(const DatabaseState& state);

}  // namespace snowflake::pg
