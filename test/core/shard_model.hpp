// A simple model of a shard. The newest id is a pair of a time unit (tick) and a sequence number,
// and the model mints one id after the other. The model of a shard shares no code with the
// implementation.
#pragma once

#include <compare>

#include "core/shard.hpp"

namespace snowflake {

struct ModelPoint {
  uint64_t tick;
  uint64_t sequence;
  auto operator<=>(const ModelPoint&) const = default;
};

class ModelShard {
 public:
  explicit ModelShard(const Layout& layout)
      : per_tick_(power_of_two(layout.sequence_bits)),
        // An id is never negative. If the fields of an id have 64 bits in total, the first bit of
        // the time is always 0.
        ticks_(power_of_two(
            std::min(unsigned{layout.time_bits},
                     63u - layout.region_bits - layout.shard_bits - layout.sequence_bits))) {}

  Claim claim(const Bounds& bounds, uint64_t wanted) {
    Claim claim{Outcome::claimed, 0, 0, 0};
    while (claim.count < wanted) {
      const ModelPoint next = next_point(bounds);
      const Outcome outcome = judge(next, bounds);
      if (claim.count == 0) claim.first = number(next);
      if (outcome != Outcome::claimed) {
        if (claim.count == 0) claim.outcome = outcome;
        break;
      }
      if (next.tick > bounds.now && next.tick != last_.tick) ++claim.borrowed;
      last_ = next;
      ++claim.count;
    }
    return claim;
  }

  void raise_floor(uint64_t floor) {
    if (floor == 0) return;
    last_ = std::max(last_, point(floor - 1));
  }

  uint64_t last() const { return number(last_); }

 private:
  static uint64_t power_of_two(unsigned bits) {
    uint64_t power = 1;
    while (bits-- > 0) power *= 2;
    return power;
  }

  ModelPoint next_point(const Bounds& bounds) const {
    if (last_.tick < bounds.now &&
        !(last_.tick + 1 == bounds.now && last_.sequence + 1 == per_tick_))
      return {bounds.now, bounds.spread == 0 ? 0 : (last_.sequence + 1) % bounds.spread};
    if (last_.sequence + 1 < per_tick_) return {last_.tick, last_.sequence + 1};
    return {last_.tick + 1, 0};
  }

  Outcome judge(const ModelPoint& next, const Bounds& bounds) const {
    if (next.tick >= ticks_) return Outcome::exhausted;
    if (next.tick > bounds.now && next.tick - bounds.now > bounds.lead)
      return Outcome::ahead_of_clock;
    if (next >= point(bounds.limit)) return Outcome::at_limit;
    return Outcome::claimed;
  }

  ModelPoint point(uint64_t position) const { return {position / per_tick_, position % per_tick_}; }
  uint64_t number(const ModelPoint& p) const { return p.tick * per_tick_ + p.sequence; }

  uint64_t per_tick_;
  uint64_t ticks_;
  ModelPoint last_{0, 0};
};

}  // namespace snowflake
