// The wall clock in milliseconds, read again and again: by the processor's time-stamp counter
// between two readings of the kernel's clock.
//
// A reading is one that clock_gettime() gave no more than kLongestUs ago, and that it would still
// give. It is never computed from the counter: the counter only tells how long the last reading may
// be used, which ends at the millisecond's end or after kLongestUs, whichever comes first. So what
// the counter gets wrong makes a reading old, and cannot make one up.
//
// How long that is in cycles:
//  - counted from before the reading, so that an interruption in between shortens it;
//  - by a rate that is measured over at least kMeasureUs against the time since boot, which is not
//    stepped and does not stand still while the machine sleeps;
//  - a counter that goes back (another processor's, a machine that woke up) is a great distance in
//    unsigned arithmetic, and ends it.
// Three things remain: a step of the wall clock within those 50 us, which is not seen before they
// are over; a counter that another host's hypervisor runs at another rate, by whose ratio they are
// longer; and clocks that are slewed after the rate was measured, by 10 % at most, so that the
// millisecond ends up to 5 us earlier. Used only where the kernel itself tells the time by this
// counter, which it has then found to be the same on all processors.
//
// Thread safety: none; an object belongs to a process.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/clock.hpp"

namespace snowflake {

// The clocks of this machine. A test has others.
struct MachineClocks {
  static uint64_t cycles() noexcept {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return 0;
#endif
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

  // Whether the last reading may be used.
  bool is_fresh() const noexcept { return Clocks::cycles() - read_at_ < lasts_; }
  // Milliseconds since 1970. REQUIRES is_fresh().
  int64_t ms() const noexcept { return ms_; }

  // The same, as the kernel's clock has them now. `trusted`: the counter may be relied on to say
  // how long that may be used.
  int64_t read_ms(bool trusted) noexcept {
    read_at_ = Clocks::cycles();
    const int64_t wall_ns = Clocks::wall_ns();
    ms_ = wall_ns / 1'000'000;
    lasts_ = trusted ? cycles_in(std::min(kLongestUs * 1000, 999'999 - wall_ns % 1'000'000)) : 0;
    return ms_;
  }

 private:
  uint64_t cycles_in(int64_t ns) noexcept {
    if (rate_ == 0) [[unlikely]]
      measure();
    return static_cast<uint64_t>(ns) * rate_ / 1000;
  }

  void measure() noexcept {
    const int64_t boot_us = Clocks::boot_us();
    if (measured_from_us_ == 0 || read_at_ <= measured_from_) {
      measured_from_us_ = boot_us;
      measured_from_ = Clocks::cycles();
      return;
    }
    const int64_t passed_us = boot_us - measured_from_us_;
    if (passed_us < kMeasureUs) return;
    // Between the two readings of the time since boot, which are cut off to microseconds and may
    // be overtaken by the counter's a little: too few cycles for this long, if anything.
    const uint64_t rate = (read_at_ - measured_from_) / static_cast<uint64_t>(passed_us + 2);
    if (rate >= 100 && rate <= 10'000)
      rate_ = rate;
    else
      measured_from_us_ = 0;
  }

  uint64_t read_at_ = 0;  // cycles
  uint64_t lasts_ = 0;    // cycles from there on; 0: not at all
  int64_t ms_ = 0;
  uint64_t rate_ = 0;  // cycles a microsecond; 0 until measured, and where it makes no sense
  uint64_t measured_from_ = 0;
  int64_t measured_from_us_ = 0;
};

using TickClock = BasicTickClock<MachineClocks>;

}  // namespace snowflake
