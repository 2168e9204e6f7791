// For the view health: returns whether the current database mints, and the reason if the database
// does not mint. The function raises no error and does not wait.
#pragma once

#include <cstdint>

#include "core/blocker.hpp"
#include "pg/memory/database_state.hpp"
#include "pg/errors/refusal.hpp"

namespace snowflake::pg {

// The reason that `health` shows if another server mints in the region of this server. The database
// continues to mint.
struct SharedRegion {
  static constexpr const char* reason = "another server mints in the same region";
  static constexpr const char* hint =
      "Read column \"conflict\" of the view snowflake.lease, and give each server a different "
      "region.";
};

// The reason that `health` shows if another database of this server mints the same ids as the
// current database. The database continues to mint.
struct SharedIds {
  static constexpr const char* reason = "another database mints the same ids";
};

struct DatabaseHealth {
  Blocker blocker;       // the blocker for which a call would fail or wait
  bool cloned;           // the database last minted elsewhere, and accept_clone() was not called
  DatabaseState* state;  // null before the first id
  int64_t clock_ms;
  int64_t lead_ms;       // by how much the newest id is ahead of the clock; 0: no id is ahead
  int64_t mark_ms;       // the stored mark; 0: the mark could not be read
  int64_t sealed;        // the seal that CREATE EXTENSION stored; 0: not read
  int64_t covered_ms;    // sessions may mint ids of earlier times, because of the published limit
  const char* conflict;  // another server that mints in the region; null: none is known
  const char* same_ids;  // the advice if another database mints the same ids, or null

  bool minting() const { return blocker == Blocker::none; }
  // The reason is a few words, and the advice is a sentence. If the database mints, reason and
  // advice are null, unless the database is a clone or another server mints in the same region.
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
