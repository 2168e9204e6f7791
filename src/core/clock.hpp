#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <cstdint>
#include <ctime>

namespace snowflake {

inline int64_t read_clock_ms(clockid_t clock) noexcept {
  timespec t;
  clock_gettime(clock, &t);
  return int64_t{t.tv_sec} * 1000 + t.tv_nsec / 1'000'000;
}

inline int64_t read_clock_us(clockid_t clock) noexcept {
  timespec t;
  clock_gettime(clock, &t);
  return int64_t{t.tv_sec} * 1'000'000 + t.tv_nsec / 1000;
}

// Returns the wall clock in milliseconds since 1970.
inline int64_t wall_clock_ms() noexcept {
  return read_clock_ms(CLOCK_REALTIME);
}

// Returns the wall clock in microseconds since 1970.
inline int64_t wall_clock_us() noexcept {
  return read_clock_us(CLOCK_REALTIME);
}

// Returns the monotonic clock in microseconds. The monotonic clock measures durations, because the
// monotonic clock is never stepped.
inline int64_t monotonic_us() noexcept {
  return read_clock_us(CLOCK_MONOTONIC);
}

// Returns the time since boot in microseconds, including the time while the machine was suspended.
inline int64_t boot_us() noexcept {
  return read_clock_us(CLOCK_BOOTTIME);
}

// Returns the difference between the wall clock and the time since boot, in microseconds. The clock
// offset (wall clock minus time since boot) changes only when the wall clock is stepped (set to
// another time). A correction of the clock rate applies to both the wall clock and the time since
// boot. If the process is interrupted between the readings of the two clocks, both clocks are read
// again.
inline int64_t clock_offset_us() noexcept {
  int64_t offset = 0;
  for (int attempt = 0; attempt < 10; ++attempt) {
    const int64_t before = read_clock_us(CLOCK_BOOTTIME);
    offset = read_clock_us(CLOCK_REALTIME) - before;
    if (read_clock_us(CLOCK_BOOTTIME) - before < 100) break;
  }
  return offset;
}

}  // namespace snowflake
