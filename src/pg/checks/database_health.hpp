// Whether the current database mints, and if not why: for health. Raises nothing
// and waits for nothing.
#pragma once

#include <cstdint>

#include "core/obstacle.hpp"
#include "pg/memory/database_state.hpp"
#include "pg/errors/refusal.hpp"

namespace snowflake::pg {

// Of a server that mints: it says so, and is not stopped.
struct SharedRegion {
  static constexpr const char* reason = "another server mints in the same region";
  static constexpr const char* hint =
      "Read \"conflict\" in the view snowflake.lease, and give each server a region of its own.";
};

struct Condition {
  Obstacle obstacle;     // for which a call would be refused or wait
  bool copied;           // it last minted elsewhere, which nobody has accepted yet
  DatabaseState* state;  // null where nothing was minted yet
  int64_t clock_ms;
  int64_t lead_ms;     // how far the shard that is furthest ahead of the clock is; 0 where none is
  int64_t mark_ms;     // as it is stored; 0 where it could not be read
  int64_t sealed;      // the seal that CREATE EXTENSION made; 0 likewise
  int64_t covered_ms;  // until when ids are covered by a published limit
  const char* conflict;  // another server that mints in the same region; null: none is known

  bool minting() const { return obstacle == Obstacle::none; }
  // What is wrong in a few words, and what to do, a sentence; null where nothing is. A copy that
  // mints is wrong as well, and so is a server that shares its region.
  const char* reason() const { return shares_region() ? SharedRegion::reason : text().reason; }
  const char* advice() const { return shares_region() ? SharedRegion::hint : text().hint; }

 private:
  bool shares_region() const { return minting() && conflict != nullptr; }
  const RefusalText& text() const {
    return text_of(minting() && copied ? Obstacle::copied : obstacle);
  }
};

Condition condition_of_database();

}  // namespace snowflake::pg
