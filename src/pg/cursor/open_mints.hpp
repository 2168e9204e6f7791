// Records which open transactions have minted, and since which tick. Each backend has a slot in
// shared memory, and readers of the cursor search all slots. The protocol is in core/settled.hpp.
#pragma once

#include "core/settled.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// The record of this session's transaction.
extern MintRecord mint_record;

// The session's slot, to write a record. It is freed when the session ends.
OpenMints& own_mint_slot();

// Closes the slot: the transaction has ended, and later snapshots include its result.
void end_open_mints();

// The open transaction of the current database that minted first. Without one, `since` is
// OpenMints::kNone.
struct OldestMint {
  uint64_t since;
  int pid;
};
OldestMint oldest_open_mint();

// For the layout of shared memory.
Size mint_slots_size();
void place_mint_slots(void* memory, bool found);

}  // namespace snowflake::pg
