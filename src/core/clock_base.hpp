// Detects jumps of the wall clock by its offset from the time since boot, which is never stepped.
// The *clock base* is the offset when the server started, or when an operator confirmed the clock.
// A jump is a difference between the present offset and the clock base.
//
// A server writes its durable mark only a little ahead of its clock. If a mark is far ahead of a
// clock that was not stepped in this server run, an earlier server run wrote the mark. A mark of an
// earlier server run that is far ahead shows that the clock was behind at server start, and makes
// the clock base *void*. When the clock reaches the mark, a void clock base is taken again. While
// the clock base is void, a step of the clock counts as a jump in two cases:
//  - After the step, the clock is still before the mark.
//  - Ids were minted in this server run before the step, so the mark may be wrong and the clock
//    right.
//
// The clock base is in the postmaster's memory. A process that writes the clock base may be killed
// at any instant.
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

  // By how much the wall clock was stepped since the clock base was taken; negative: back.
  int64_t drift_us(int64_t offset_us) const noexcept {
    return offset_us - base_us_.load(std::memory_order_relaxed);
  }

  // Records that ids were minted with the present clock. After a call, no mark can make the clock
  // base void.
  void record_use() noexcept {
    if (!is_in_use()) void_until_ms_.store(kInUse, std::memory_order_relaxed);
  }
  bool is_in_use() const noexcept {
    return void_until_ms_.load(std::memory_order_relaxed) == kInUse;
  }

  // Takes the clock base again after an operator has confirmed the clock.
  void accept(int64_t offset_us) noexcept {
    record_use();
    base_us_.store(offset_us, std::memory_order_relaxed);
  }

  // Records the durable mark of any database. `ahead_ms` is how far ahead of the clock a mark is
  // written at most. `jump_ms` is the largest step of the clock that needs no confirmation.
  void record_mark(int64_t mark_ms, int64_t boot_us, int64_t ahead_ms, int64_t jump_ms) noexcept {
    const int64_t unstepped_ms = (base_us_.load(std::memory_order_relaxed) + boot_us) / 1000;
    if (mark_ms - ahead_ms - jump_ms > unstepped_ms)
      raise_to(void_until_ms_, std::min(mark_ms, kInUse - 1));
  }

  // True if the clock base is void and the clock is at most `ahead_ms` before the mark. A server
  // writes its mark by up to `ahead_ms` ahead of its clock.
  bool may_be_replaced(int64_t clock_ms, int64_t ahead_ms) const noexcept {
    const int64_t until_ms = void_until_ms_.load(std::memory_order_relaxed);
    return until_ms != kUndecided && until_ms != kInUse && clock_ms >= until_ms - ahead_ms;
  }

  // Takes the clock base again if may_be_replaced() is true. If the caller is killed half-way, the
  // old clock base stays valid, and an operator must confirm the step of the clock.
  bool replace(int64_t offset_us, int64_t clock_ms, int64_t ahead_ms) noexcept {
    if (!may_be_replaced(clock_ms, ahead_ms)) return false;
    if (void_until_ms_.exchange(kInUse, std::memory_order_relaxed) == kInUse) return false;
    base_us_.store(offset_us, std::memory_order_relaxed);
    return true;
  }

 private:
  // The state changes only in this order: undecided, void (a time in ms), in use.
  static constexpr int64_t kUndecided = INT64_MIN;
  static constexpr int64_t kInUse = INT64_MAX;

  std::atomic<int64_t> base_us_;
  std::atomic<int64_t> void_until_ms_;
};

}  // namespace snowflake
