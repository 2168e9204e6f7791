// Returns for the view `health` whether the current database mints, without errors and without
// waiting.
#pragma once

#include <cstdint>

#include "core/blocker.hpp"
#include "pg/memory/database_state.hpp"
#include "pg/errors/refusal.hpp"

namespace snowflake::pg {

// The view `health` shows this reason if another server mints in the region of this server.
struct SharedRegion {
  static constexpr const char* reason = "another server mints in the same region";
  static constexpr const char* hint =
      "Read column \"conflict\" of the view snowflake.lease, and give each server a different "
      "region.";
};

// The view `health` shows this reason if another database of this server mints the same ids.
struct SharedIds {
  static constexpr const char* reason = "another database mints the same ids";
};

struct DatabaseHealth {
  Blocker blocker;       // the blocker for which a call would fail or wait
  bool cloned;           // accept_clone() was not called yet
  DatabaseState* state;  // null before the first id
  int64_t clock_ms;
  int64_t lead_ms;       // by how much the newest id is ahead of the clock, or 0
  int64_t mark_ms;       // 0: could not be read
  int64_t sealed;        // the seal of CREATE EXTENSION; 0: not read
  int64_t covered_ms;    // sessions may mint ids of earlier times
  const char* conflict;  // another server that mints in the region, or null
  const char* same_ids;  // advice about the same ids, or null

  bool minting() const { return blocker == Blocker::none; }
  // The reason and the advice are null if the database mints, unless the database is a clone or
  // shares its region.
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
