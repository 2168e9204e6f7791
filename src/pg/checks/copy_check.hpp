// Whether the database is on a copy of the files that it last minted on, as sequence
// snowflake.fingerprint remembers them: a clone, a base backup, a restored machine, a promoted
// standby. The original and the copy mint the same ids; the original has no way to notice.
//
// What is remembered changes where nothing has moved, or that was accepted, or the region is
// leased, in which two servers never are. No dump carries it. A standby reads and writes nothing.
#pragma once

#include "core/fingerprint.hpp"
#include "pg/checks/state_sequences.hpp"
#include "pg/memory/database_state.hpp"

namespace snowflake::pg {

// Remembers where the database is, durably, unless something has moved: what, is returned. False
// where the sequence does not exist any more.
bool remember_place(const StateSequences& sequences, Moved* moved);

// Keeps for all sessions what was found, and says in the log that it is a copy.
void note_copy(DatabaseState& state, const Moved& moved);

// Whether sessions may mint on by what was found last.
bool copy_may_mint(const DatabaseState& state);

// What has moved, for a caller that must not block or fail. REQUIRES a lock on the sequence.
Moved moved_since(const StateSequences& sequences);

// Remembers where the database is now. Returns what had moved.
Moved accept_copy();

}  // namespace snowflake::pg
