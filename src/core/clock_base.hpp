// The base: the offset of the wall clock from the time since boot. Jumps of the wall clock are
// measured against the base. The time since boot is never stepped. The base is taken when the
// server starts, and again at accept().
//
// When the server starts, the clock may be wrong. A server writes a mark only a little ahead of the
// clock, so a durable mark can prove that the clock was wrong. If the mark is much further ahead,
// and this server run saw no step of the clock, an earlier run wrote the mark. So the clock was
// behind when the present run started. If the mark proves that the clock was wrong, the base is
// *void*. When the clock reaches the mark, the base is taken again. While the base is void, a step
// of the clock counts as a jump in two cases. In the first case, the clock is still before the mark
// after the step. In the second case, ids were minted in this run before the step, so the mark may
// be wrong although the clock is right.
//
// The base is in the postmaster's memory. A process that writes the base may be killed at any
// instant.
#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <algorithm>
#include <cstdint>

#include "core/atomic_max.hpp"

namespace snowflake {

class ClockBase {
 public:
  void start(int64_t offset_us) noexcept {
    base_us_.store(offset_us, std::memory_order_relaxed);
    void_until_ms_.store(kUndecided, std::memory_order_relaxed);
  }

  // Returns by how much the wall clock was stepped since the base was taken; negative if the clock
  // went back.
  int64_t drift_us(int64_t offset_us) const noexcept {
    return offset_us - base_us_.load(std::memory_order_relaxed);
  }

  // Records that ids were minted under the present clock. After ids were minted, a mark cannot
  // replace the base.
  void record_use() noexcept {
    if (!is_in_use()) void_until_ms_.store(kInUse, std::memory_order_relaxed);
  }
  bool is_in_use() const noexcept {
    return void_until_ms_.load(std::memory_order_relaxed) == kInUse;
  }

  // Takes the base again because an operator confirmed the clock.
  void accept(int64_t offset_us) noexcept {
    record_use();
    base_us_.store(offset_us, std::memory_order_relaxed);
  }

  // Records a stored mark of any database. `boot_us` is the time since boot. `ahead_ms` is how far
  // ahead of the clock a mark is written at most. `jump_ms` is the largest step of the clock that
  // needs no confirmation.
  void record_mark(int64_t mark_ms, int64_t boot_us, int64_t ahead_ms, int64_t jump_ms) noexcept {
    const int64_t unstepped_ms = (base_us_.load(std::memory_order_relaxed) + boot_us) / 1000;
    if (mark_ms - ahead_ms - jump_ms > unstepped_ms)
      raise_to(void_until_ms_, std::min(mark_ms, kInUse - 1));
  }

  // Returns whether the base is void and the clock has nearly reached the mark. "Nearly" means
  // within `ahead_ms`, because a server writes a mark by up to `ahead_ms` ahead of its clock.
  bool may_be_replaced(int64_t clock_ms, int64_t ahead_ms) const noexcept {
    const int64_t until_ms = void_until_ms_.load(std::memory_order_relaxed);
    return until_ms != kUndecided && until_ms != kInUse && clock_ms >= until_ms - ahead_ms;
  }

  // Takes the base again if may_be_replaced() is true. If the caller is killed half-way, the old
  // base stays valid. With the old base, the step of the clock counts as a jump. An operator must
  // confirm a jump.
  bool replace(int64_t offset_us, int64_t clock_ms, int64_t ahead_ms) noexcept {
    if (!may_be_replaced(clock_ms, ahead_ms)) return false;
    if (void_until_ms_.exchange(kInUse, std::memory_order_relaxed) == kInUse) return false;
    base_us_.store(offset_us, std::memory_order_relaxed);
    return true;
  }

 private:
  // The states are in order: state_ only changes to a later state.
  static constexpr int64_t kUndecided = INT64_MIN;
  static constexpr int64_t kInUse = INT64_MAX;

  std::atomic<int64_t> base_us_;
  std::atomic<int64_t> void_until_ms_;
};

}  // namespace snowflake
