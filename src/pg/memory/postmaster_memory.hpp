// PostmasterMemory contains the state of a server run. If the library is preloaded, the postmaster
// maps PostmasterMemory, so that its contents survive crash restarts. If the library is not
// preloaded, PostmasterMemory is a part of PostgreSQL's shared memory, which a crash restart
// initializes again.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/clock_base.hpp"
#include "core/keyed_max.hpp"
#include "core/lease_memory.hpp"
#include "core/region_marks.hpp"

namespace snowflake::pg {

struct PostmasterMemory {
  ClockBase clock;
  std::atomic<bool> clock_was_synchronized;
  // The greatest high-water mark that a DROP or a rollback has removed, for each database, in ms
  // since 1970.
  KeyedMax<512> lost_marks;
  // The latest time up to which ids of each region may have been minted. The member `regions` is
  // unused on a server that leases its region. To change `regions`, a session must hold
  // shared_state->lock in exclusive mode.
  RegionMarks<256, 256> regions;
  LeaseMemory lease;
  std::atomic<int64_t> lease_fleet;
  std::atomic<int64_t> lease_born_us;
};

// If the library is not preloaded, the pointer postmaster_memory is null until open_shared_state()
// is called.
extern PostmasterMemory* postmaster_memory;

void map_postmaster_memory();

// Returns by how many microseconds the wall clock was stepped since server start. Negative values
// are steps back.
int64_t clock_drift_us();

}  // namespace snowflake::pg
