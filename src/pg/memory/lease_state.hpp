// The lease of this server. While the lease is valid, the server may mint ids that contain the
// number of one region. Times are milliseconds since 1970.
//
// The lease is in the postmaster's memory, see core/lease_memory.hpp. Locking rules
//
//  - A process must hold shared_state->lock to raise the member `highest` of the lease, or to read
//    the leased region. The lease worker changes the leased region under shared_state->lock. Before
//    the lease worker gives up a region, the worker withdraws the limits up to which the databases
//    may mint ids.
//
//  - While the server holds a region, `until` of the lease never decreases, and can be read without
//    a lock.
#pragma once

#include "core/lease_memory.hpp"
#include "pg/memory/lease_port.hpp"

namespace snowflake::pg {

bool leased();

// Returns whether "snowflake.lease_conninfo" is set. If "snowflake.lease_conninfo" is set, the
// server leases a region, or reports its static region to the lease server.
bool reports_region();

bool lease_worker_runs();

// Returns the number of the server's fleet (group of servers), or 0 if the server leases no region.
// A database stores the fleet number before its first id. Until a lease server has sent the fleet
// number, fleet_to_remember() returns the constant kUnheardFleet (unknown fleet).
int64_t fleet_to_remember();

int64_t lease_age_ms();

LeaseView lease_view();
LeaseReport lease_report();

// Returns a server that mints in the region of this server, or null if no such server is known.
const char* region_conflict();
int64_t lease_fleet();

// The length of a lease grows with the age of the server's incarnation (server run), between a
// minimum and a maximum.
int64_t lease_length_ms();

// Returns the time at which the lease ends, or INT64_MAX if the region is not leased.
int64_t lease_until_ms();

// REQUIRES shared_state->lock.
RegionHold leased_region_under_lock();

// Returns the lease whose end limits the times of new ids, or null if the region is static (not
// leased).
LeaseMemory* limiting_lease();

void wake_lease_worker();

}  // namespace snowflake::pg
