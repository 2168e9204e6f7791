#pragma once

#include "pg/memory/database_state.hpp"

namespace snowflake::pg {

// A session's hold on the database's mark, which only high_water.cpp writes. Region and limit are
// read together, because the limit bounds a claim and the id contains the region.
struct MarkHold {
  bool attached;
  DatabaseState* state;
  Shard* counters;
  MarkIdentity mark;
  uint32_t generation;
  uint32_t region;
  uint64_t limit;  // as last read; never decreases within a generation
  uint64_t
      extend_early_at;  // a claim from this position on writes the next mark; 0: also ends refusals

  bool good() const { return attached && state->limits.is_current(generation); }
};

extern MarkHold hold;
void reset_hold();

// Called before an error is raised, so that the next claim records that the database mints again.
void record_next_claim();

}  // namespace snowflake::pg
