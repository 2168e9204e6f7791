#pragma once

#include "pg/memory/database_state.hpp"

namespace snowflake::pg {

// Contains the values that this session last read from shared memory, such as the region and the
// limit of new ids. Only high_water.cpp, attach.cpp and mark_hold.cpp write the struct MarkHold.
// Region and limit must be read together, because an id contains the region and must be below the
// limit.
struct MarkHold {
  bool attached;
  DatabaseState* state;
  Shard* counters;
  MarkIdentity mark;
  uint32_t generation;
  uint32_t region;
  uint64_t limit;            // never decreases within a generation
  uint64_t extend_early_at;  // position (tick and sequence number) at which to write the next mark

  bool good() const { return attached && state->limits.is_current(generation); }
};

extern MarkHold hold;
void reset_hold();

// Makes the session call extend_early() (high_water.hpp) after its next id. A session calls
// record_next_claim() at the end of attach(), and before a refused call raises its error. When the
// session mints an id again, extend_early() records that calls are no longer refused.
void record_next_claim();

}  // namespace snowflake::pg
