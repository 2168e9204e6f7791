// The sequence snowflake.fleet stores the identifier of the fleet (group of servers) to which the
// database belongs, or 0 for none. A database that stores the identifier of a fleet does not mint
// on a server without lease settings. A clone of the database contains the same identifier, because
// base backups contain the sequence snowflake.fleet. A dump of pg_dump does not contain the
// sequences fleet and seal_local.
#pragma once

#include "pg/checks/state_sequences.hpp"

namespace snowflake::pg {

// Stores the number of this server's fleet (group of servers) durably, unless the database has
// already stored such a number. The argument `remembered` receives the fleet number that the
// database has stored. Returns false if DROP EXTENSION has removed the sequence snowflake.fleet.
// REQUIRES a lease if this server gets its region from a lease server.
bool remember_fleet(const StateSequences& sequences, int64_t* remembered);

// Returns false only if the fleet number in the database differs from the fleet number of this
// server. The function fleet_still_holds() never waits, and returns true if the sequence
// snowflake.fleet is locked.
bool fleet_still_holds(const StateSequences& sequences);

// REQUIRES a lock on the sequence snowflake.fleet.
int64_t remembered_fleet(const StateSequences& sequences);

}  // namespace snowflake::pg
