// The wall clock in milliseconds, for callers that read it very often. The processor's counter
// decides how long a reading of the kernel's clock may be used.
//
// A reading is used for at most kLongestUs, and not after the end of the millisecond of the
// reading. A time is never computed from the counter. So with a wrong counter, a reading can be too
// old, but cannot be ahead of the clock. core/counter.hpp decides which counters are used. If the
// counter must not be used, the counter is not read.
//
// The following three rules determine for how many cycles a reading is used:
//  - The cycles are counted from before the kernel's clock is read, so an interruption shortens the
//    use.
//  - The rate is measured over at least kMeasureUs against the time since boot. The time since boot
//    is never stepped, and includes the time in which the machine sleeps. An interruption makes the
//    measured rate too small. So the rate is measured again every kMeasureAgainMs.
//  - Only the processor that took a reading may use the reading. The counters of two processors can
//    differ, because KVM and Xen set an offset for each processor.
//
// If the counter is wrong, a reading can become too old:
//  - If the counter jumps ahead, the reading is not used any more.
//  - If the counter goes back or stops, the reading is not used any more. Each use of a reading
//    requires that the counter has advanced since the last use.
//  - If the counter becomes slower by a factor, the present reading is used longer by the same
//    factor. The next reading compares the counter with the kernel's clock. If the counter shows
//    less than 3/4 of the kernel's time, the rate is measured again. Until the rate is measured,
//    every call reads the kernel's clock. If the counter shows 3/4 of the kernel's time or more,
//    the slower counter is not detected. In this case, a reading can be used for up to 4/3 of
//    kLongestUs.
//
// TickClock has three limits:
//  - A step of the wall clock is detected when the present reading ends.
//  - If the clock is slewed by 10 % after the rate was measured, a reading can be used for up to 5
//    us after the end of the reading's millisecond.
//  - If a live migration sets the counter back by almost exactly the time since the last use, the
//    reading is used for up to kLongestUs more.
//
// Uniqueness of ids does not depend on TickClock, because the shard counter and the mark guarantee
// uniqueness. The times in ids, and the order of ids of different shards, depend on TickClock. The
// order of ids of different shards also depends on it.
//
// Thread safety: none; an object belongs to a process.
#pragma once

#include <sched.h>
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#endif

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/clock.hpp"

namespace snowflake {

// The clocks of the present machine. Tests pass other clocks.
struct MachineClocks {
  static uint64_t cycles() noexcept {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t count;
    asm volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
#else
    return 0;
#endif
  }
  static int this_processor() noexcept {
#if defined(__x86_64__) && __has_include(<sys/rseq.h>)
    // Reads the processor's number in the same way as sched_getcpu(). The library call would take 3
    // of the 16 ns of an id.
    if (__rseq_size != 0) [[likely]] {
      const char* thread;
      asm("mov %%fs:0, %0" : "=r"(thread));
      using Area = const volatile struct rseq;
      return static_cast<int>(reinterpret_cast<Area*>(thread + __rseq_offset)->cpu_id);
    }
#endif
    return sched_getcpu();
  }
  static int64_t wall_ns() noexcept {
    timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
  }
  static int64_t boot_us() noexcept {
    return read_clock_us(CLOCK_BOOTTIME);
  }
};

template <class Clocks>
class BasicTickClock {
 public:
  static constexpr int64_t kLongestUs = 50;
  static constexpr int64_t kMeasureUs = 1000;
  static constexpr uint64_t kMeasureAgainMs = 100;

  // Whether the last reading may be used.
  bool is_fresh() noexcept {
    if (ends_at_ == 0) return false;
    const uint64_t now = Clocks::cycles();
    if (static_cast<int>(now > used_at_) & static_cast<int>(now < ends_at_) &
        static_cast<int>(Clocks::this_processor() == processor_)) [[likely]] {
      used_at_ = now;
      return true;
    }
    ends_at_ = 0;
    return false;
  }
  // Milliseconds since 1970. REQUIRES is_fresh().
  int64_t ms() const noexcept { return ms_; }

  // Returns the time from a new reading of the kernel's clock. If `trusted` is set, the counter may
  // decide how long the reading is used.
  int64_t read_ms(bool trusted) noexcept {
    if (!trusted) {
      ends_at_ = 0;
      return ms_ = Clocks::wall_ns() / 1'000'000;
    }
    const uint64_t last_read_at = read_at_;
    const int64_t last_wall_ns = wall_ns_;
    const int last_processor = std::exchange(processor_, Clocks::this_processor());
    used_at_ = read_at_ = Clocks::cycles();
    if (Clocks::this_processor() != processor_) [[unlikely]]
      processor_ = kNoProcessor;
    wall_ns_ = Clocks::wall_ns();
    ms_ = wall_ns_ / 1'000'000;
    if (processor_ != last_processor) [[unlikely]]
      measured_from_ = 0;
    else if (is_slower(read_at_ - last_read_at, wall_ns_ - last_wall_ns)) [[unlikely]]
      rate_ = measured_from_ = 0;
    if (read_at_ - measured_from_ > kMeasureAgainMs * rate_) [[unlikely]]
      measure();
    const uint64_t lasts = cycles_in(std::min(kLongestUs * 1000, 999'999 - wall_ns_ % 1'000'000));
    ends_at_ = lasts == 0 ? 0 : read_at_ + lasts;
    return ms_;
  }

 private:
  // Whether the counter has advanced by less than the measured rate predicts. If the counter went
  // back, the unsigned difference is large, and the reading is not used again.
  bool is_slower(uint64_t cycles, int64_t wall_ns) const noexcept {
    constexpr int64_t kNoiseNs = 2000;
    const int64_t certain_ns = std::min(wall_ns, int64_t{1'000'000'000}) - kNoiseNs;
    return certain_ns > 0 && cycles < static_cast<uint64_t>(certain_ns) * rate_ / 1'000'000 / 4 * 3;
  }

  uint64_t cycles_in(int64_t ns) const noexcept {
    return static_cast<uint64_t>(ns) * rate_ / 1'000'000;
  }

  void measure() noexcept {
    const int64_t boot_us = Clocks::boot_us();
    const int64_t passed_us = boot_us - measured_from_us_;
    if (measured_from_ == 0 || read_at_ <= measured_from_ || passed_us > kLongestMeasureUs) {
      measured_from_us_ = boot_us;
      measured_from_ = Clocks::cycles();
      if (Clocks::this_processor() != processor_) [[unlikely]]
        measured_from_ = 0;
      return;
    }
    if (passed_us < kMeasureUs) return;
    // The two readings of the time since boot are truncated to microseconds, so 2 us are added to
    // the difference. The added 2 us make the rate too small rather than too great.
    const uint64_t rate = (read_at_ - measured_from_) * 1000 / static_cast<uint64_t>(passed_us + 2);
    // If the new rate is far greater than the old rate, the new rate or the old rate is wrong.
    const bool plausible =
        rate >= kLeastRate && rate <= kMostRate && (rate_ == 0 || rate / 4 <= rate_ / 3);
    rate_ = plausible ? rate : 0;
    measured_from_ = 0;
  }

  static constexpr int kNoProcessor = -1;
  static constexpr int64_t kLongestMeasureUs = 1'000'000;
  static constexpr uint64_t kLeastRate = 10'000;     // 10 MHz
  static constexpr uint64_t kMostRate = 10'000'000;  // 10 GHz

  uint64_t read_at_ = 0;          // cycles
  uint64_t used_at_ = 0;          // cycles, at the last use of the reading
  uint64_t ends_at_ = 0;          // cycles, at the end of the reading's use; 0: the use has ended
  int processor_ = kNoProcessor;  // the counter at the time read_at_
  int64_t ms_ = 0;
  int64_t wall_ns_ = 0;  // at read_at_
  uint64_t rate_ = 0;    // cycles per millisecond; 0: not measured, or implausible
  uint64_t measured_from_ = 0;
  int64_t measured_from_us_ = 0;
};

using TickClock = BasicTickClock<MachineClocks>;

}  // namespace snowflake
