// A session's hold on the database's mark while the session mints.
#pragma once

#include "pg/memory/database_state.hpp"

namespace snowflake::pg {

// A session's hold on the database's mark. Only high_water.cpp writes the hold. Region and limit
// are read together: the limit bounds a claim, and the id contains the region.
struct MarkHold {
  bool attached;
  DatabaseState* state;
  Shard* counters;
  MarkIdentity mark;
  uint32_t generation;
  uint32_t region;
  uint64_t limit;            // the limit as last read, which never decreases within a generation
  uint64_t extend_early_at;  // a claim from this position on writes the next mark; 0: the next
                             // claim claim also ends the refusals

  bool good() const { return attached && state->limits.is_current(generation); }
};

extern MarkHold hold;
void reset_hold();

// Called before an error is raised, so that the next claim records that the database mints again.
void record_next_claim();

}  // namespace snowflake::pg
