// Against what jumps of the wall clock are measured: its offset from the time since boot, which is
// never stepped, when the server started, until somebody takes another one.
//
// Nothing vouches for the clock at start. It was wrong, by a durable mark that lies further ahead
// of where it would be now, had nobody stepped it, than marks are ever written: such a mark is of
// an earlier life. Then the base is *void*, until the clock reaches the mark, and is taken anew
// there: as much is believed of the clock as of the one at start. A clock that is set to a time
// before the mark has jumped as ever, and so it has where ids have been minted since the start:
// they vouch for the clock, and it may be the mark that is wrong.
//
// In the postmaster's memory: whoever writes may be killed at any instant.
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

  // How far the wall clock has been stepped since the base; negative when it went back.
  int64_t drift_us(int64_t offset_us) const noexcept {
    return offset_us - base_us_.load(std::memory_order_relaxed);
  }

  // Ids are minted under the clock.
  void vouch() noexcept {
    if (!is_vouched_for()) void_until_ms_.store(kVouchedFor, std::memory_order_relaxed);
  }
  bool is_vouched_for() const noexcept {
    return void_until_ms_.load(std::memory_order_relaxed) == kVouchedFor;
  }

  // Somebody says that the clock is right.
  void accept(int64_t offset_us) noexcept {
    vouch();
    base_us_.store(offset_us, std::memory_order_relaxed);
  }

  // A stored mark was seen, of whichever database. `boot_us`: the time since boot; `ahead_ms`: how
  // far ahead of the clock a mark is written at most; `jump_ms`: how far a clock may be stepped
  // that is believed.
  void see_mark(int64_t mark_ms, int64_t boot_us, int64_t ahead_ms, int64_t jump_ms) noexcept {
    const int64_t unstepped_ms = (base_us_.load(std::memory_order_relaxed) + boot_us) / 1000;
    if (mark_ms - ahead_ms - jump_ms > unstepped_ms)
      raise_to(void_until_ms_, std::min(mark_ms, kVouchedFor - 1));
  }

  // Whether the base is void, and the clock has come to where such a mark is written.
  bool may_be_replaced(int64_t clock_ms, int64_t ahead_ms) const noexcept {
    const int64_t until_ms = void_until_ms_.load(std::memory_order_relaxed);
    return until_ms != kUndecided && until_ms != kVouchedFor && clock_ms >= until_ms - ahead_ms;
  }

  // Takes it anew, where it may be. Whoever is killed half-way leaves a jump that has to be
  // accepted, and none that is believed.
  bool replace(int64_t offset_us, int64_t clock_ms, int64_t ahead_ms) noexcept {
    if (!may_be_replaced(clock_ms, ahead_ms)) return false;
    if (void_until_ms_.exchange(kVouchedFor, std::memory_order_relaxed) == kVouchedFor)
      return false;
    base_us_.store(offset_us, std::memory_order_relaxed);
    return true;
  }

 private:
  // In this order: from each the word only goes on to a later one.
  static constexpr int64_t kUndecided = INT64_MIN;
  static constexpr int64_t kVouchedFor = INT64_MAX;

  std::atomic<int64_t> base_us_;
  std::atomic<int64_t> void_until_ms_;
};

}  // namespace snowflake
