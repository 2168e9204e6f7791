// The lease of this server's region, as sessions read the lease and wait for the lease. Times are
// ms since 1970.
//
// The lease is in the postmaster's memory, see core/lease_memory.hpp. Locking rules
//  - raising `highest` and reading a region need shared_state->lock; the worker changes the lease
//    under shared_state->lock, after all limits were withdrawn;
//  - while a region is held, `until` never decreases, and can be read without the lock.
#pragma once

#include "core/lease_memory.hpp"
#include "pg/memory/lease_port.hpp"

namespace snowflake::pg {

// "snowflake.leased_regions" is set.
bool leased();

// Whether "snowflake.lease_conninfo" is set. If "snowflake.lease_conninfo" is set, the region is
// either leased, or static and reported to the lease server.
bool reports_region();

// Whether a lease worker runs.
bool lease_worker_runs();

// The fleet that a database of this server stores before its first id. The value is kUnheardFleet
// (core/blocker.hpp) if no lease server has answered yet, and 0 if the region is not leased.
int64_t fleet_to_remember();

// The age of the incarnation.
int64_t lease_age_ms();

LeaseView lease_view();
LeaseReport lease_report();

// Another server that mints in the region of this server, as reported by the lease server; null if
// unknown.
const char* region_conflict();
int64_t lease_fleet();

// Returns the length of the lease that the next request asks for. The length is the age of the
// incarnation, limited to a minimum and a maximum.
int64_t lease_length_ms();

// The end of the lease; INT64_MAX if the region is not leased.
int64_t lease_until_ms();

// The region that this server leases at present. REQUIRES shared_state->lock.
RegionHold leased_region_under_lock();

// The lease that restricts limits, for Limits::publish(). The lease is null if the region is not
// leased.
LeaseMemory* limiting_lease();

// Makes the worker request a lease at once, for a call that waits.
void wake_lease_worker();

}  // namespace snowflake::pg
