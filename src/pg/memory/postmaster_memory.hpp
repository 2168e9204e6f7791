// State of a server run. If the library is preloaded, the postmaster maps the memory and child
// processes inherit the memory. So the memory exists as long as the postmaster. If a session loads
// the library, the memory is a part of PostgreSQL's shared memory. PostgreSQL initializes its
// shared memory again after a crash.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/clock_base.hpp"
#include "core/keyed_max.hpp"
#include "core/lease_memory.hpp"

namespace snowflake::pg {

struct PostmasterMemory {
  // The base for jumps of the wall clock.
  ClockBase clock;
  // Whether the kernel has reported the clock as synchronized since the server started.
  std::atomic<bool> clock_was_synchronized;
  // For each database: the greatest mark, in ms since 1970, that a DROP or a rollback has removed.
  KeyedMax<512> lost_marks;
  // For each region (the key is region + 1): the greatest mark of a database that has minted in the
  // region, but has stopped minting there.
  KeyedMax<256> left_regions;
  // The leased region, its fleet, and the start of the incarnation (monotonic).
  LeaseMemory lease;
  std::atomic<int64_t> lease_fleet;
  std::atomic<int64_t> lease_born_us;
};

// Null until open_shared_state(), unless the library was preloaded.
extern PostmasterMemory* postmaster_memory;

void map_postmaster_memory();

// Returns how far the wall clock has been stepped since the base was taken; negative if the clock
// went back.
int64_t clock_drift_us();

}  // namespace snowflake::pg
