// Detects jumps of the wall clock by its offset from the time since boot, which is never stepped.
// ClockBase records the difference between the wall clock and the time since boot (clock offset)
// when the server starts. ClockBase also records the clock offset when accept_clock() or a granted
// lease confirms the clock. If the wall clock jumps, the present clock offset (wall clock minus
// time since boot) differs from the recorded clock offset.
//
// A server stores a high-water mark that is only a little ahead of its clock. The function
// record_mark() compares the high-water mark with the time that the clock would show without steps
// since server start. If the high-water mark is far ahead of the time without steps, an earlier
// server run wrote the mark. The high mark of an earlier server run shows that the clock was behind
// when the present server run started. ClockBase then marks the recorded clock offset as unreliable
// (*void*). When the wall clock has caught up with the high-water mark, the clock counts as
// correct, so ClockBase records the present clock offset. Until ClockBase has replaced the
// unreliable clock offset, a clock step ahead causes the error clock_jumped only in the following
// two cases:
//
//  - After the clock step, the wall clock still shows a time before the high-water mark, so the
//    step has not corrected the clock.
//
//  - The server minted ids before the clock step. The clock before the step may have been right,
//    and the high-water mark may be wrong.
//
// The recorded clock offset is stored in the postmaster's memory. A process that is writing the
// clock offset may be killed at any instant.
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

  // Returns how far, in microseconds, the wall clock was stepped since the clock offset (wall clock
  // minus time since boot) was recorded. A negative result means that the wall clock was set back.
  int64_t drift_us(int64_t offset_us) const noexcept {
    return offset_us - base_us_.load(std::memory_order_relaxed);
  }

  // Records that sessions have started to mint ids. After record_use(), a high-water mark far ahead
  // of the clock does not make the recorded clock offset unreliable (see record_mark()).
  void record_use() noexcept {
    if (!is_in_use()) void_until_ms_.store(kInUse, std::memory_order_relaxed);
  }
  bool is_in_use() const noexcept {
    return void_until_ms_.load(std::memory_order_relaxed) == kInUse;
  }

  // Records a clock offset (wall clock minus time since boot) that accept_clock() or a granted
  // lease has confirmed.
  void accept(int64_t offset_us) noexcept {
    record_use();
    base_us_.store(offset_us, std::memory_order_relaxed);
  }

  // Marks the recorded clock offset as unreliable (void) if the high-water mark of a database is
  // too far ahead of the clock. A server writes a high-water mark at most `ahead_ms` ahead of its
  // clock. The argument `jump_ms` is the largest step of the clock that is accepted without a
  // confirmation.
  void record_mark(int64_t mark_ms, int64_t boot_us, int64_t ahead_ms, int64_t jump_ms) noexcept {
    const int64_t unstepped_ms = (base_us_.load(std::memory_order_relaxed) + boot_us) / 1000;
    if (mark_ms - ahead_ms - jump_ms > unstepped_ms)
      raise_to(void_until_ms_, std::min(mark_ms, kInUse - 1));
  }

  // True if the recorded clock offset is unreliable (void), and the high-water mark is now at most
  // `ahead_ms` ahead of the wall clock.
  bool may_be_replaced(int64_t clock_ms, int64_t ahead_ms) const noexcept {
    const int64_t until_ms = void_until_ms_.load(std::memory_order_relaxed);
    return until_ms != kUndecided && until_ms != kInUse && clock_ms >= until_ms - ahead_ms;
  }

  // If may_be_replaced() is true, records the present clock offset (wall clock minus time since
  // boot). If the process is killed in the middle of replace(), the old clock offset stays valid.
  // After a process was killed in replace(), only accept_clock() or a granted lease can record a
  // new clock offset.
  bool replace(int64_t offset_us, int64_t clock_ms, int64_t ahead_ms) noexcept {
    if (!may_be_replaced(clock_ms, ahead_ms)) return false;
    if (void_until_ms_.exchange(kInUse, std::memory_order_relaxed) == kInUse) return false;
    base_us_.store(offset_us, std::memory_order_relaxed);
    return true;
  }

 private:
  // The recorded clock offset has three states: undecided, unreliable (void), and in use. The state
  // of the recorded clock offset changes only from undecided to unreliable, from undecided to in
  // use, or from unreliable to in use. If the recorded clock offset is unreliable, void_until_ms_
  // contains the greatest high-water mark (in ms) that was too far ahead of the clock.
  static constexpr int64_t kUndecided = INT64_MIN;
  static constexpr int64_t kInUse = INT64_MAX;

  std::atomic<int64_t> base_us_;
  std::atomic<int64_t> void_until_ms_;
};

}  // namespace snowflake
