// Memory that the postmaster maps and its children inherit. PostgreSQL initializes its shared
// memory again after a crash. This memory lives as long as the postmaster.
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
  // By database: the greatest mark, in ms since 1970, that a DROP or a rollback made unreachable.
  KeyedMax<4096> lost_marks;
  // The leased region, its fleet, and the start of the incarnation (monotonic).
  LeaseMemory lease;
  std::atomic<int64_t> lease_fleet;
  std::atomic<int64_t> lease_born_us;
};

// Null if the library was not preloaded.
extern PostmasterMemory* postmaster_memory;

void map_postmaster_memory();

// How far the wall clock has been stepped since the base; negative if it went back.
int64_t clock_drift_us();

}  // namespace snowflake::pg
