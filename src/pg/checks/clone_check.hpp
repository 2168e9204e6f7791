// Detects that a database is a clone: a copied machine, a base backup, a restored machine or a
// promoted standby. Sequence snowflake.origin_fingerprint identifies the machine, disk and files
// with which the database last minted. The original and the clone would mint the same ids, and the
// original cannot detect the clone.
//
// The origin fingerprint is not updated after a part has changed, unless the clone was accepted or
// the region is leased. Two servers never lease the same region. Dumps do not contain the origin
// fingerprint. A standby does not compare the origin fingerprint.
#pragma once

#include "core/origin_fingerprint.hpp"
#include "pg/checks/state_sequences.hpp"
#include "pg/memory/database_state.hpp"

namespace snowflake::pg {

// Stores the present origin fingerprint durably, unless a part has changed. Returns the changed
// parts in *moved. Returns false if the sequence of the origin fingerprint was dropped in the
// meantime.
bool remember_fingerprint(const StateSequences& sequences, Moved* moved);

// Tells all sessions whether the database is a clone, and logs a clone.
void record_clone(DatabaseState& state, const Moved& moved);

bool clone_may_mint(const DatabaseState& state);

// Returns the changed parts of the origin fingerprint without waiting and without errors. REQUIRES
// a lock on the sequence of the origin fingerprint.
Moved moved_since(const StateSequences& sequences);

// Stores the present origin fingerprint, and returns the parts that had changed.
Moved accept_clone();

}  // namespace snowflake::pg
