// The region and the shards that a database mints, as the newest session of the database is
// configured.
//
// A session reads its configuration when the session starts, so the session that started last has
// the newest configuration. The choice of the newest session applies to all sessions of the
// database. If an older session mints its first id after the newest session, the choice does not
// change.
#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <algorithm>
#include <compare>
#include <cstdint>

#include "core/shard_set.hpp"

namespace snowflake {

// When a session started. The time since boot is never stepped, but has a coarse resolution. If two
// sessions have the same time since boot, the wall clock orders the sessions.
struct SessionStart {
  int64_t since_boot;
  int64_t wall_us;

  constexpr auto operator<=>(const SessionStart&) const = default;
};

// A zeroed object has no choice yet. REQUIRES exclusion by the caller.
class MintOrigin {
 public:
  bool is_chosen() const noexcept { return start_ != SessionStart{}; }
  // Whether the choice of a session that started at `start` replaces the present choice.
  bool yields_to(SessionStart start) const noexcept { return start > start_; }

  // Whether offer() would change the present choice.
  bool would_change(SessionStart start, int32_t region, ShardSet shards) const noexcept {
    return yields_to(start) && !is_same(region, shards);
  }

  // Offers the choice of a session. Returns whether the present choice changed. A newer session
  // with the same choice also confirms the choice, so sessions that started in between do not
  // change the choice.
  bool offer(SessionStart start, int32_t region, ShardSet shards) noexcept {
    const bool changes = would_change(start, region, shards);
    if (yields_to(start)) start_ = start;
    if (!changes) return false;
    region_ = region;
    count_ = shards.count;
    std::copy_n(shards.ranges, shards.count, ranges_);
    return true;
  }

  int32_t region() const noexcept { return region_; }
  ShardSet shards() const noexcept { return {ranges_, count_}; }

 private:
  bool is_same(int32_t region, ShardSet shards) const noexcept {
    return region == region_ &&
           std::equal(ranges_, ranges_ + count_, shards.ranges, shards.ranges + shards.count);
  }

  SessionStart start_;
  int32_t region_;
  size_t count_;
  ShardRange ranges_[kMaxShardRanges];
};

}  // namespace snowflake
