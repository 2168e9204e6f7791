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

// Shown for a database of whose ids another one of this server mints the same. It continues to
// mint, too.
struct SharedIds {
  static constexpr const char* reason = "another database mints the same ids";
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
  const char* same_ids;  // the advice if another database mints the same ids, or null

  bool minting() const { return blocker == Blocker::none; }
  // The reason in a few words, and the advice as a sentence. Both are null if the database mints,
  // unless it is a copy, its server shares its region, or another database mints the same ids.
  const char* reason() const {
    return shares_region() ? SharedRegion::reason
           : shares_ids()  ? SharedIds::reason
                           : text().reason;
  }
  const char* advice() const {
    return shares_region() ? SharedRegion::hint : shares_ids() ? same_ids : text().hint;
  }

 private:
  bool shares_region() const { return minting() && conflict != nullptr; }
  bool shares_ids() const { return minting() && !cloned && same_ids != nullptr; }
  const RefusalText& text() const {
    return text_of(minting() && cloned ? Blocker::cloned : blocker);
  }
};

DatabaseHealth database_health();

}  // namespace snowflake::pg
