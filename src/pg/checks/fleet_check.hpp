// Sequence snowflake.fleet stores the fleet whose leases covered a database's ids, or 0. Dumps
// contain neither it nor seal_local. A copy of the data directory contains it, so a clone that
// starts without the setting refuses to mint.
#pragma once

#include "pg/checks/state_sequences.hpp"

namespace snowflake::pg {

// Reads the sequence. If it has no fleet yet, first stores the present one durably. Returns false
// if the sequence does not exist any more: look it up again. REQUIRES a leased region, if regions
// are leased.
bool remember_fleet(const StateSequences& sequences, int64_t* remembered);

// The same check for a caller that must not block: false only if another fleet was read.
bool fleet_still_holds(const StateSequences& sequences);

// The value of the sequence; 0 if it is gone. REQUIRES a lock on it.
int64_t remembered_fleet(const StateSequences& sequences);

}  // namespace snowflake::pg
