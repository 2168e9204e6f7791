// TickClock returns the wall clock in milliseconds, and caches each clock reading for callers that
// read the clock very often. Each clock reading expires after a number of cycles of the processor's
// counter (TSC).
//
// A clock reading is cached for at most kLongestUs, and not after the end of its millisecond.
// TickClock never computes a time from the processor's counter. A wrong processor counter can
// therefore make a clock reading too old, but never ahead of the clock.
//
// The following rules limit how long a clock reading is used, in cycles of the processor's counter:
//
//  - TickClock reads the processor's counter before the kernel's clock, so an interruption between
//    both readings only makes the cached clock reading expire earlier.
//
//  - The rate of the processor's counter is measured over at least kMeasureUs against the time
//    since boot, which is never stepped. If the process is interrupted during the measurement, the
//    measured rate of the counter is too small. To replace a wrong rate, TickClock measures the
//    rate of the processor's counter every kMeasureAgainMs milliseconds.
//
//  - Only the processor that took a clock reading uses the reading, because KVM and Xen give the
//    counter of each processor a different offset.
//
//  - A clock reading is used again only if the processor's counter has advanced since the last use
//    of the clock reading. A clock reading is not used again after the processor's counter has
//    jumped ahead, gone back or stopped.
//
// A clock reading can be used too long in four cases:
//
//  - If the processor's counter becomes slower, a cached clock reading is used longer, because the
//    reading expires at a fixed value of the counter. When TickClock next reads the kernel's clock,
//    it detects a processor's counter that has slowed down by more than a quarter. After TickClock
//    has detected that the processor's counter advances too slowly, every call reads the kernel's
//    clock until the counter's rate is measured again. A slowdown of the processor's counter by up
//    to a quarter of its measured rate is not detected. If the processor's counter slows down by a
//    quarter, a clock reading can be used for 4/3 * kLongestUs (67 microseconds).
//
//  - A step of the wall clock is detected only when the cached clock reading expires.
//
//  - If the clock is slewed by 10 % after the counter's rate is measured, a clock reading can be
//    used 5 microseconds too long.
//
//  - A live migration of the virtual machine can set the processor's counter back. If the counter
//    is still greater than `used_at_` (its value at the last use of the clock reading), TickClock
//    does not detect the migration. After an undetected migration, a clock reading can be used
//    kLongestUs (50 microseconds) too long.
//
// The uniqueness of ids does not depend on TickClock. Only the times in ids, and the order of ids
// of different shards, depend on TickClock.
//
// A TickClock object is not thread-safe. Each process has its own TickClock object and uses the
// object in only one thread.
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

// Reads the clocks of this machine. Unit tests use simulated clocks instead of MachineClocks.
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
    // Reads the number of the current processor, as sched_getcpu() does. The library call
    // sched_getcpu() would cost 3 of the 16 ns that an id costs.
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

  // True if the last clock reading may be used again.
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
  // Returns the last clock reading in milliseconds since 1970. REQUIRES is_fresh().
  int64_t ms() const noexcept { return ms_; }

  // Reads the kernel's clock. If `trusted` is false, is_fresh() returns false until the next call
  // of read_ms().
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
  // True if the processor's counter ran at less than 3/4 of its measured rate. If the processor's
  // counter went back, the unsigned difference is large, and is_slower() returns false.
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
    // Adds 2 microseconds to the measured time, because both readings of the time since boot are
    // truncated. The measured rate of the processor's counter determines after how many cycles a
    // clock reading expires. If the measured rate of the processor's counter is too small, the
    // cached clock reading expires early, which is harmless. If the measured rate of the
    // processor's counter were too large, the cached clock reading would expire too late.
    const uint64_t rate = (read_at_ - measured_from_) * 1000 / static_cast<uint64_t>(passed_us + 2);
    // If the new rate of the counter is far above the old rate, one of the two rates is wrong, so
    // both rates are discarded.
    const bool plausible =
        rate >= kLeastRate && rate <= kMostRate && (rate_ == 0 || rate / 4 <= rate_ / 3);
    rate_ = plausible ? rate : 0;
    measured_from_ = 0;
  }

  static constexpr int kNoProcessor = -1;
  static constexpr int64_t kLongestMeasureUs = 1'000'000;
  static constexpr uint64_t kLeastRate = 10'000;     // 10 MHz
  static constexpr uint64_t kMostRate = 10'000'000;  // 10 GHz

  uint64_t read_at_ = 0;  // counter value at the last reading of the kernel's clock
  uint64_t used_at_ = 0;  // processor's counter when the cached time `ms_` was last used
  uint64_t ends_at_ = 0;  // counter value at which the clock reading expires; 0: already expired
  int processor_ = kNoProcessor;  // the processor that took the clock reading
  int64_t ms_ = 0;
  int64_t wall_ns_ = 0;  // wall clock at read_at_
  uint64_t rate_ = 0;    // cycles per ms; 0: unknown
  uint64_t measured_from_ = 0;
  int64_t measured_from_us_ = 0;
};

using TickClock = BasicTickClock<MachineClocks>;

}  // namespace snowflake
