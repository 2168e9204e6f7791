// Sequence snowflake.fleet stores the fleet whose leases covered a database's ids, or 0. Dumps do
// not contain the sequences fleet and seal_local. A copy of the data directory contains the fleet.
// So a clone that starts without lease settings does not mint.
#pragma once

#include "pg/checks/state_sequences.hpp"

namespace snowflake::pg {

// Reads the sequence. If the sequence contains no fleet yet, the function first stores the present
// fleet durably. Returns false if the sequence does not exist any more. The caller must then look
// the sequence up again. REQUIRES a leased region, if regions are leased.
bool remember_fleet(const StateSequences& sequences, int64_t* remembered);

// Checks the fleet for a caller that must not wait. Returns false only if the sequence contains
// another fleet.
bool fleet_still_holds(const StateSequences& sequences);

// The value of the sequence, or 0 if the sequence does not exist any more. REQUIRES a lock on the
// sequence.
int64_t remembered_fleet(const StateSequences& sequences);

}  // namespace snowflake::pg
