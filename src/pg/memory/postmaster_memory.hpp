// Memory that the postmaster maps for itself and its children inherit. PostgreSQL's shared memory
// is laid out afresh after a crash; this lasts as long as the postmaster does.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/clock_base.hpp"
#include "core/keyed_max.hpp"
#include "core/lease_memory.hpp"

namespace snowflake::pg {

struct PostmasterMemory {
  // What jumps of the wall clock are measured from.
  ClockBase clock;
  // The kernel has once had the clock as synchronized since the server started.
  std::atomic<bool> clock_was_synchronized;
  // By database: the greatest mark, in ms since 1970, that a DROP or a rollback made unreachable.
  KeyedMax<4096> lost_marks;
  // The region that is leased, the fleet it is of, and when the incarnation began (monotonic).
  LeaseMemory lease;
  std::atomic<int64_t> lease_fleet;
  std::atomic<int64_t> lease_born_us;
};

// Null where the library was not preloaded.
extern PostmasterMemory* postmaster_memory;

void map_postmaster_memory();

// How far the wall clock has been stepped since the base; negative when it went back.
int64_t clock_drift_us();

}  // namespace snowflake::pg
