// Whether the current database mints, and if not why: for clock_status and health. Raises nothing
// and waits for nothing.
#pragma once

#include <cstdint>

#include "core/obstacle.hpp"
#include "pg/memory/database_state.hpp"
#include "pg/errors/refusal.hpp"

namespace snowflake::pg {

struct Condition {
  Obstacle obstacle;     // for which a call would be refused or wait
  bool copied;           // it last minted elsewhere, which nobody has accepted yet
  DatabaseState* state;  // null where nothing was minted yet
  int64_t clock_ms;
  int64_t lead_ms;     // how far the shard that is furthest ahead of the clock is; 0 where none is
  int64_t mark_ms;     // as it is stored; 0 where it could not be read
  int64_t sealed;      // the seal that CREATE EXTENSION made; 0 likewise
  int64_t covered_ms;  // until when ids are covered by a published limit

  bool minting() const { return obstacle == Obstacle::none; }
  // What is wrong in a few words, and what to do, a sentence; null where nothing is. A copy that
  // mints is wrong as well.
  const char* reason() const { return text().reason; }
  const char* advice() const { return text().hint; }

 private:
  const RefusalText& text() const {
    return text_of(minting() && copied ? Obstacle::copied : obstacle);
  }
};

Condition condition_of_database();

}  // namespace snowflake::pg
