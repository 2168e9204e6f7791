// Which open transactions have minted, and since which tick: a slot in shared memory for every
// backend, which readers of the cursor look through. The protocol is core/settled.hpp's.
#pragma once

#include "core/settled.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// What this session has noted of its transaction.
extern MintNote mint_note;

// The session's slot, for a note. It is left when the session ends.
OpenMints& own_mint_slot();

// The transaction is over, and whoever takes a snapshot from now on knows: closes the slot.
void end_open_mints();

// The open transaction of the current database that minted first. `since` is OpenMints::kNone where
// there is none.
struct OldestMint {
  uint64_t since;
  int pid;
};
OldestMint oldest_open_mint();

// For laying out the shared memory.
Size mint_slots_size();
void place_mint_slots(void* memory, bool found);

}  // namespace snowflake::pg
