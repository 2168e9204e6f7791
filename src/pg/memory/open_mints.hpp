// For each open transaction that has minted, records the tick of the transaction's first id. Each
// backend has a slot in the state of its database, and readers of the cursor search all slots. The
// protocol is in core/settled.hpp.
#pragma once

#include "core/settled.hpp"
#include "pg/memory/database_state.hpp"

namespace snowflake::pg {

// The record of this session's open transaction.
extern MintRecord mint_record;

// Returns the session's slot in the state to which the session is attached. The caller of slot()
// writes the session's record into the slot.
OpenMints& own_mint_slot();

// Leaves the slot, because the session will use another state from now on.
void leave_mint_slot();

// Closes the slot after the transaction has ended and later snapshots include the result of the
// transaction. A session that ends within a transaction first rolls the transaction back. During
// the rollback, PostgreSQL still maps the slot. In callbacks of on_shmem_exit(), the slot may be
// unmapped.
void end_open_mints();

// Finds the open transaction of a database that minted first. If no open transaction has minted,
// `since` is OpenMints::kNone.
struct OldestMint {
  uint64_t since;
  int pid;
};
OldestMint oldest_open_mint(const DatabaseState& state);

}  // namespace snowflake::pg
