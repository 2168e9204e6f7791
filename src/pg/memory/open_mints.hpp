// Records the tick (time unit) of the first id of each open transaction that has minted. Each
// backend has an entry (slot) in the shared state of its database. The function settled() reads the
// entries (slots) of all backends. The file core/settled.hpp describes how backends write and read
// their slots (class OpenMints).
#pragma once

#include "core/settled.hpp"
#include "pg/memory/database_state.hpp"

namespace snowflake::pg {

extern MintRecord mint_record;

// Returns the slot in shared memory in which this session must record the first id of its
// transaction.
OpenMints& own_mint_slot();

// leave_mint_slot() clears the session's slot. A session must call leave_mint_slot() before it uses
// another shared memory segment for its database.
void leave_mint_slot();

// Clears the session's slot (record of its first id) in shared memory. The function
// end_open_mints() is called after the transaction has ended and new snapshots include the result
// of the transaction. If a session ends within a transaction, the rollback clears the session's
// slot. A callback of on_shmem_exit() runs too late to clear the slot, because the shared memory
// segment may already be unmapped.
void end_open_mints();

// Among the open transactions of a database, finds the transaction that minted its first id
// earliest. The member `since` is OpenMints::kNone if no open transaction has minted.
struct OldestMint {
  uint64_t since;
  int pid;
};
OldestMint oldest_open_mint(const DatabaseState& state);

}  // namespace snowflake::pg
