// Finds out whether the current database mints, and if not why, for the view health. It raises no
// error and does not wait.
#pragma once

#include <cstdint>

#include "core/blocker.hpp"
#include "pg/memory/database_state.hpp"
#include "pg/errors/refusal.hpp"

namespace snowflake::pg {

// Shown for a server that shares its region. It continues to mint.
struct SharedRegion {
  static constexpr const char* reason = "another server mints in the same region";
  static constexpr const char* hint =
      "Read \"conflict\" in the view snowflake.lease, and give each server a region of its own.";
};

struct DatabaseHealth {
  Blocker blocker;       // for which a call would be refused or wait
  bool cloned;           // it last minted elsewhere, and that is not accepted
  DatabaseState* state;  // null before the first id
  int64_t clock_ms;
  int64_t lead_ms;     // how far the shard that is furthest ahead of the clock is; 0 where none is
  int64_t mark_ms;     // as it is stored; 0 where it could not be read
  int64_t sealed;      // the seal that CREATE EXTENSION made; 0 likewise
  int64_t covered_ms;  // until when ids are covered by a published limit
  const char* conflict;  // another server that mints in the same region; null: none is known

  bool minting() const { return blocker == Blocker::none; }
  // The reason in a few words, and the advice as a sentence. Both are null if the database mints,
  // unless it is a copy or its server shares its region.
  const char* reason() const { return shares_region() ? SharedRegion::reason : text().reason; }
  const char* advice() const { return shares_region() ? SharedRegion::hint : text().hint; }

 private:
  bool shares_region() const { return minting() && conflict != nullptr; }
  const RefusalText& text() const {
    return text_of(minting() && cloned ? Blocker::cloned : blocker);
  }
};

DatabaseHealth database_health();

}  // namespace snowflake::pg
