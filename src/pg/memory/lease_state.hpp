// The lease of the region that this server mints in, if its regions are leased: what sessions see
// of it, and wait for. Times are ms since 1970.
//
// The lease is the postmaster's memory, see core/lease_memory.hpp. Locking rules
//  - who raises `highest` or takes a region from it holds shared_state->lock, and the worker
//    changes it under the same lock, where all limits were withdrawn before;
//  - `until` only rises while a region is held, and may be read without.
#pragma once

#include "core/lease_memory.hpp"
#include "pg/memory/lease_port.hpp"

namespace snowflake::pg {

// "snowflake.leased_regions" is set.
bool leased();

// "snowflake.lease_conninfo" is set: the region is leased, or static and reported.
bool reports_region();

// Whether there is a process that leases.
bool lease_worker_runs();

// The regime that a database of this server remembers before it has minted: the fleet,
// kUnheardFleet (core/obstacle.hpp) where none has answered yet, 0 where nothing is leased.
int64_t fleet_to_remember();

// How long the incarnation has lived.
int64_t lease_age_ms();

LeaseView lease_view();
LeaseReport lease_report();

// Another server that mints in the same region, as the lease server shows it; null: none is known.
const char* region_conflict();
int64_t lease_fleet();

// How long a grant is asked for now: as long as the incarnation is old, within bounds.
int64_t lease_length_ms();

// The end of the lease; INT64_MAX where nothing is leased.
int64_t lease_until_ms();

// Under shared_state->lock. The region that this server mints in, leased or its own.
RegionHold region_under_lock();

// The lease that bounds limits, for Limits::publish(). Null if nothing is leased.
LeaseMemory* limiting_lease();

// Asks the worker for a lease at once, for a call that waits.
void wake_lease_worker();

}  // namespace snowflake::pg
