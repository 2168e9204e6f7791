// Records the tick (time unit) of the first id of each open transaction that has minted. Each
// backend has an entry (slot) in the shared state of its database. The function settled() reads the
// entries (slots) of all backends. The file core/settled.hpp describes how slots are written and
// read.
#pragma once

#include "core/settled.hpp"
#include "pg/memory/database_state.hpp"

namespace snowflake::pg {

extern MintRecord mint_record;

// Returns the slot in shared memory in which this session must record the first id of its
// transaction.
OpenMints& own_mint_slot();

// leave_mint_slot() must be called before the session uses the shared state of another layout.
void leave_mint_slot();

// Clears the session's slot after the transaction has ended and new snapshots include its result.
// If a session ends within a transaction, its slot is closed during the rollback, while the segment
// is mapped. When callbacks of on_shmem_exit() run, the segment may already be unmapped.
void end_open_mints();

// Among the open transactions of a database, finds the transaction that minted its first id
// earliest. The member `since` is OpenMints::kNone if no open transaction has minted.
struct OldestMint {
  uint64_t since;
  int pid;
};
OldestMint oldest_open_mint(const DatabaseState& state);

}  // namespace snowflake::pg
