// Decides whether TickClock may use the processor's counter (TSC) to reuse clock readings.
//
// TickClock needs a counter that runs at one rate on every processor, even while a processor
// sleeps. The name of the kernel's clock source shows whether the processor's counter is suitable:
//
//  - "tsc": the kernel has compared the counters of all processors, and computes the time from the
//    counter.
//
//  - "kvm-clock", "hyperv_clocksource_tsc_page", "xen": the kernel multiplies the counter by a
//    factor from the hypervisor. The counters of two processors can differ, so TickClock uses a
//    clock reading only on the processor that took the reading. The processor flags constant_tsc
//    and nonstop_tsc guarantee a constant rate that continues in sleep states.
//
//  - "arch_sys_counter" on ARM: the architecture guarantees a constant rate of cntvct_el0.
//
// If the kernel uses an unlisted clock source, such as "hpet", the processor's counter (TSC) may
// have failed the kernel's tests.
//
// A live migration can change the rate or the value of the processor's counter. TickClock discards
// a clock reading if the processor's counter goes back. TickClock measures the rate again if the
// processor's counter has become slower than the kernel's clock. The time to read the processor's
// counter is measured first, because the counter can be slow on a hypervisor or an emulator.
#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace snowflake {

// The longest acceptable time for reading the processor's counter, in ns. Reading the kernel's
// clock takes 20 to 40 ns.
inline constexpr int64_t kMostCounterNs = 100;

enum class CounterUse : uint8_t { used, unknown_source, not_constant, slow };

enum class Processor : uint8_t { x86, arm, other };

inline constexpr Processor kProcessor =
#if defined(__x86_64__)
    Processor::x86;
#elif defined(__aarch64__)
    Processor::arm;
#else
    Processor::other;
#endif

// Returns whether `flags` contains `flag`. The argument `flags` contains the processor flags from
// /proc/cpuinfo, separated by spaces.
constexpr bool has_flag(std::string_view flags, std::string_view flag) noexcept {
  while (!flags.empty()) {
    const size_t end = std::min(flags.find(' '), flags.size());
    if (flags.substr(0, end) == flag) return true;
    flags.remove_prefix(std::min(end + 1, flags.size()));
  }
  return false;
}

constexpr bool has_constant_counter(std::string_view flags) noexcept {
  return has_flag(flags, "constant_tsc") && has_flag(flags, "nonstop_tsc");
}

constexpr CounterUse judge_counter(std::string_view source, bool constant, int64_t cost_ns,
                                   Processor processor = kProcessor) noexcept {
  const bool known = processor == Processor::arm ? source == "arch_sys_counter"
                                                 : processor == Processor::x86 && source == "tsc";
  const bool scaled =
      processor == Processor::x86 &&
      (source == "kvm-clock" || source == "hyperv_clocksource_tsc_page" || source == "xen");
  if (!known && !scaled) return CounterUse::unknown_source;
  if (scaled && !constant) return CounterUse::not_constant;
  return cost_ns <= kMostCounterNs ? CounterUse::used : CounterUse::slow;
}

// Measures in several rounds how many ns a reading of the processor's counter takes. Returns the
// least result of all rounds, because a round may be interrupted. Returns INT64_MAX if the
// processor's counter stands still.
template <class Clocks>
int64_t counter_cost_ns() noexcept {
  constexpr int kRounds = 8;
  constexpr int kReadings = 1000;
  int64_t least_us = INT64_MAX / 1000;
  const uint64_t first = Clocks::cycles();
  uint64_t last = first;
  for (int round = 0; round < kRounds; ++round) {
    const int64_t from_us = Clocks::boot_us();
    for (int i = 0; i < kReadings; ++i) last = Clocks::cycles();
    least_us = std::min(least_us, Clocks::boot_us() - from_us);
  }
  return last > first ? least_us * 1000 / kReadings : INT64_MAX;
}

}  // namespace snowflake
