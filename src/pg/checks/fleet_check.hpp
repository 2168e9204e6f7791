// Sequence snowflake.fleet stores the fleet whose leases covered a database's ids, or 0. A copy of
// the data directory contains the fleet, so a clone without lease settings does not mint. Dumps do
// not contain the sequences fleet and seal_local.
#pragma once

#include "pg/checks/state_sequences.hpp"

namespace snowflake::pg {

// Returns the stored fleet in *remembered, and stores the present fleet durably if none was stored.
// Returns false if the sequence snowflake.fleet was dropped in the meantime. REQUIRES a leased
// region, if regions are leased.
bool remember_fleet(const StateSequences& sequences, int64_t* remembered);

// Returns false only if another fleet is stored. If the sequence snowflake.fleet is locked,
// fleet_still_holds() does not wait and returns true.
bool fleet_still_holds(const StateSequences& sequences);

// Returns the stored fleet, or 0 if the sequence was dropped. REQUIRES a lock on the sequence.
int64_t remembered_fleet(const StateSequences& sequences);

}  // namespace snowflake::pg
