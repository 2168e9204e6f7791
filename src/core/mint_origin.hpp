// The region and the shards in which a database mints ids.
//
// A session reads its configuration at its start, so the session that started last has the newest
// configuration. All sessions of the database mint with the configuration of the session that
// started last.
#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <algorithm>
#include <compare>
#include <cstdint>

#include "core/shard_set.hpp"

namespace snowflake {

// The start time of a session. The time since boot is never stepped, but has a coarse unit. If two
// sessions have the same `since_boot`, the session with the greater `wall_us` started later.
struct SessionStart {
  int64_t since_boot;
  int64_t wall_us;

  constexpr auto operator<=>(const SessionStart&) const = default;
};

// Memory that is filled with zeros is a valid MintOrigin object without a region and shards. The
// caller must exclude concurrent calls of all members of MintOrigin.
class MintOrigin {
 public:
  bool is_chosen() const noexcept { return start_ != SessionStart{}; }
  bool yields_to(SessionStart start) const noexcept { return start > start_; }

  bool would_change(SessionStart start, int32_t region, ShardSet shards) const noexcept {
    return yields_to(start) && !is_same(region, shards);
  }

  // Sets the region and shards of the database, unless a session with the same or a later start
  // time has already called offer(). Returns true if the region or shards of the database changed.
  // The function offer() stores the start time of the session even if the region and shards do not
  // change.
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
  uint64_t hash_of_shards() const noexcept {
    uint64_t hash = count_;
    for (size_t i = 0; i < count_; ++i) {
      hash ^= uint64_t{ranges_[i].first} << 32 | ranges_[i].last;
      hash = (hash ^ hash >> 29) * 0x9e3779b97f4a7c15;
    }
    return hash;
  }
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
