// Detects that a database is a clone: a copied machine, a base backup, a restored machine or a
// promoted standby. Sequence snowflake.origin_fingerprint identifies the place where the database
// last minted. The original and the clone would mint the same ids, and the original cannot detect
// the clone.
//
// The origin fingerprint is updated in three cases: no part of the fingerprint has changed, the
// clone was accepted, or the region is leased. Two servers never lease the same region. Dumps do
// not contain the origin fingerprint. A standby does not compare the origin fingerprint.
#pragma once

#include "core/origin_fingerprint.hpp"
#include "pg/checks/state_sequences.hpp"
#include "pg/memory/database_state.hpp"

namespace snowflake::pg {

// Stores the present origin fingerprint durably, unless a part has changed. Returns the changed
// parts in *moved, and false if the sequence does not exist any more.
bool remember_fingerprint(const StateSequences& sequences, Moved* moved);

// Publishes the result for all sessions, and logs a clone.
void record_clone(DatabaseState& state, const Moved& moved);

// Whether the last result of the check allows sessions to continue to mint.
bool clone_may_mint(const DatabaseState& state);

// Returns the changed parts, for a caller that must not block or fail. REQUIRES a lock on the
// sequence.
Moved moved_since(const StateSequences& sequences);

// Stores the present origin fingerprint. Returns the parts that had changed.
Moved accept_clone();

}  // namespace snowflake::pg
