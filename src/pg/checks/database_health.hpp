// Returns for the view `health` whether the current database can mint ids, without waiting and
// without raising an error.
#pragma once

#include <cstdint>

#include "core/blocker.hpp"
#include "pg/memory/database_state.hpp"
#include "pg/errors/refusal.hpp"

namespace snowflake::pg {

struct SharedRegion {
  static constexpr const char* reason = "another server mints in the same region";
  static constexpr const char* hint =
      "Read column \"conflict\" of the view snowflake.lease, and give each server a different "
      "region.";
};

struct SharedIds {
  static constexpr const char* reason = "another database mints the same ids";
};

struct DatabaseHealth {
  Blocker blocker;
  bool cloned;           // accept_clone() was not called yet
  DatabaseState* state;  // null before the first id
  int64_t clock_ms;
  int64_t lead_ms;       // the time of the newest id minus the clock
  int64_t mark_ms;       // 0: the high-water mark could not be read
  int64_t sealed;        // 0: the layout was not read
  int64_t covered_ms;    // time up to which sessions of this database may mint ids
  const char* conflict;  // null: no conflict is known
  const char* same_ids;

  bool minting() const { return blocker == Blocker::none; }
  // If the database can mint, reason() and advice() return null, except for an unconfirmed clone
  // and for a region in which another server mints.
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
