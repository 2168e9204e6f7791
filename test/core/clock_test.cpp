#include "core/clock.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace snowflake {
namespace {

int64_t system_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// The test passes if one of five attempts gives the right result, because the machine's clock may
// be stepped during an attempt.
TEST(Clock, TellsTheWallTimeInMilliseconds) {
  bool between = false;
  for (int i = 0; i < 5 && !between; ++i) {
    const int64_t before = system_ms();
    const int64_t now = wall_clock_ms();
    between = before <= now && now <= system_ms();
  }
  EXPECT_TRUE(between);
}

TEST(Clock, MonotonicTimeIsInMicroseconds) {
  using std::chrono::microseconds;
  using std::chrono::steady_clock;
  const auto outer = steady_clock::now();
  const int64_t first = monotonic_us();
  const auto inner = steady_clock::now();
  while (steady_clock::now() < inner + microseconds(2000)) {
  }
  const int64_t passed = monotonic_us() - first;
  EXPECT_GE(passed, 2000);
  EXPECT_LE(passed, (steady_clock::now() - outer) / microseconds(1) + 1);  // truncated
}

// Wall clock and time since boot are read one after the other, so the test accepts a difference of
// a tenth of a second.
TEST(Clock, OffsetIsWallTimeLessTimeSinceBoot) {
  bool close = false;
  for (int i = 0; i < 5 && !close; ++i) {
    const int64_t expected = (wall_clock_ms() - read_clock_ms(CLOCK_BOOTTIME)) * 1000;
    const int64_t off = clock_offset_us() - expected;
    close = -100'000 < off && off < 100'000;
  }
  EXPECT_TRUE(close);
}

}  // namespace
}  // namespace snowflake
