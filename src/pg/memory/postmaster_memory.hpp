// State of a server run. If the library is preloaded, the postmaster maps this memory, which child
// processes inherit and crash restarts keep. If a session loads the library, this memory is a part
// of PostgreSQL's shared memory. PostgreSQL initializes its shared memory again after a crash.
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
  // The kernel has reported the clock as synchronized in this server run.
  std::atomic<bool> clock_was_synchronized;
  // For each database, the greatest mark that a DROP or a rollback has removed, in milliseconds
  // since 1970.
  KeyedMax<512> lost_marks;
  // For each region, the greatest mark of a database that has stopped minting there. The key is
  // region + 1.
  KeyedMax<256> left_regions;
  LeaseMemory lease;
  std::atomic<int64_t> lease_fleet;
  std::atomic<int64_t> lease_born_us;
};

// Null until open_shared_state(), unless the library was preloaded.
extern PostmasterMemory* postmaster_memory;

void map_postmaster_memory();

// Returns how far the wall clock has been stepped since the server start, negative for a step back.
int64_t clock_drift_us();

}  // namespace snowflake::pg
