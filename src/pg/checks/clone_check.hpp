// Detects that a database is a clone, for example on a copied or restored machine, in a base
// backup, or on a promoted standby. Sequence snowflake.origin_fingerprint identifies the machine,
// disk and files of the server that last minted in the database. A clone and its original would
// mint the same ids, and the original cannot detect the clone.
//
// If a server does not lease its region, only accept_clone() replaces the stored fingerprint of
// another server. On a server that leases its region, the first id replaces the stored fingerprint.
// Clones that lease their regions mint different ids, because two servers never lease the same
// region at the same time. A dump does not contain the origin fingerprint of the database.
#pragma once

#include "core/origin_fingerprint.hpp"
#include "pg/checks/state_sequences.hpp"
#include "pg/memory/database_state.hpp"

namespace snowflake::pg {

// Stores the origin fingerprint of this server durably, unless the database contains a different
// fingerprint. The argument `moved` receives the parts (machine, disk, files) in which the stored
// fingerprint differs from this server. Returns false if DROP EXTENSION has removed the sequence
// snowflake.origin_fingerprint.
bool remember_fingerprint(const StateSequences& sequences, Moved* moved);

void record_clone(DatabaseState& state, const Moved& moved);

bool clone_may_mint(const DatabaseState& state);

// Compares the stored origin fingerprint with this server, and returns the parts that differ. The
// function moved_since() never waits and raises no error. REQUIRES a lock on the sequence
// snowflake.origin_fingerprint.
Moved moved_since(const StateSequences& sequences);

Moved accept_clone();

}  // namespace snowflake::pg
