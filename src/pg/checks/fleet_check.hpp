// The regime that a database's ids were minted under, as sequence snowflake.fleet remembers it: 0,
// or the fleet whose leases covered them. No dump carries it, as it carries no seal_local; a copy
// of the data directory does, so a copy that starts without the setting refuses to mint.
#pragma once

#include "pg/checks/state_sequences.hpp"

namespace snowflake::pg {

// Reads the sequence, and first remembers the present fleet, durably, if it has none. False if the
// sequence does not exist any more: look it up again. REQUIRES, where regions are leased, that
// one is held.
bool remember_fleet(const StateSequences& sequences, int64_t* remembered);

// For a caller that must not block: false only where another regime was seen.
bool fleet_still_holds(const StateSequences& sequences);

// The value of the sequence; 0 if it is gone. REQUIRES a lock on it.
int64_t remembered_fleet(const StateSequences& sequences);

}  // namespace snowflake::pg
