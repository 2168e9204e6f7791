// Tests that TickClock only returns times that the kernel's clock has shown within the last 50 us.
#include "core/tick_clock.hpp"

#include "core/counter.hpp"

#include <gtest/gtest.h>

#include <array>
#include <deque>

#include "support.hpp"

namespace snowflake {
namespace {

// Simulates a machine on which reading a clock takes time.
struct Machine {
  static inline Random* random = nullptr;
  static inline int64_t true_ns = 0;
  static inline int64_t wall_off_ns = 0;  // sum of steps and slewing
  static inline double cycles_per_ns = 2.5;
  static inline double counted = 0;
  static inline std::array<int64_t, 2> processor_off{};  // cycles
  static inline size_t processor = 0;
  static inline int64_t read_at_ns = 0;  // of the last exact reading
  static inline uint64_t exact_readings = 0;
  static inline uint64_t counter_readings = 0;
  static inline int64_t counter_ns = 0;  // time of a counter reading
  static inline bool interrupted = false;
  static inline bool instant = false;  // a reading takes no time
  static inline std::deque<std::pair<int64_t, int64_t>> shown;

  // Records the times that the simulated wall clock has shown in the last 40 ms. An interruption of
  // the simulated process lasts at most 30 ms.
  static void watch() {
    const int64_t ms = wall_now() / 1'000'000;
    if (shown.empty() || shown.back().second != ms) shown.push_back({true_ns, ms});
    while (shown.size() > 1 && shown[1].first < true_ns - 40'000'000) shown.pop_front();
  }
  static bool shown_since(int64_t ms, int64_t from_ns) {
    for (size_t i = 0; i < shown.size(); ++i) {
      const int64_t end = i + 1 < shown.size() ? shown[i + 1].first : true_ns;
      if (shown[i].second == ms && end >= from_ns) return true;
    }
    return false;
  }

  static void pass(int64_t ns) {
    true_ns += ns;
    counted += static_cast<double>(ns) * cycles_per_ns;
  }
  // Simulates that a process is interrupted, and may continue on another processor.
  static void interruption() {
    pass(instant ? 1 : 10 + static_cast<int64_t>(random->below(20)));
    if (!interrupted || !random->percent(3)) return;
    pass(static_cast<int64_t>(random->below(random->percent(20) ? 30'000'000 : 200'000)));
    processor = random->below(2);
  }
  static int64_t wall_now() { return 1'700'000'000'000'000'000 + true_ns + wall_off_ns; }

  static uint64_t cycles() {
    ++counter_readings;
    pass(counter_ns);
    interruption();
    return static_cast<uint64_t>(static_cast<int64_t>(counted) + processor_off[processor]);
  }
  static int this_processor() { return static_cast<int>(processor); }
  static int64_t wall_ns() {
    interruption();
    watch();
    const int64_t wall = wall_now();
    read_at_ns = true_ns;
    ++exact_readings;
    interruption();
    return wall;
  }
  static int64_t boot_us() {
    interruption();
    const int64_t us = 5'000'000 + true_ns / 1000;
    interruption();
    return us;
  }

  static void reset(Random& r) {
    random = &r;
    true_ns = wall_off_ns = read_at_ns = 0;
    counted = 1e12;
    cycles_per_ns = 2.5;
    processor_off = {};
    processor = 0;
    exact_readings = counter_readings = 0;
    counter_ns = 0;
    interrupted = instant = false;
    shown.clear();
  }
};
struct Clock : BasicTickClock<Machine> {
  int64_t read(bool trusted) { return is_fresh() ? ms() : read_ms(trusted); }
};

constexpr int64_t kLongestNs = Clock::kLongestUs * 1000;

class TickClockTest : public testing::Test {
 protected:
  void SetUp() override { Machine::reset(random_); }

  Random random_{1};
  Clock clock_;
};

TEST_F(TickClockTest, DoesNotReadACounterThatIsNotTrusted) {
  for (int i = 0; i < 100'000; ++i) clock_.read(true);
  clock_.read_ms(false);
  const uint64_t before = Machine::counter_readings;
  for (int i = 0; i < 1000; ++i) clock_.read(false);
  EXPECT_EQ(Machine::counter_readings, before);
}

TEST_F(TickClockTest, IsExactWhereTheCounterIsNotTrusted) {
  for (int i = 0; i < 1000; ++i) {
    const uint64_t before = Machine::exact_readings;
    clock_.read(false);
    ASSERT_EQ(Machine::exact_readings, before + 1);
    ASSERT_FALSE(clock_.is_fresh());
    Machine::pass(1000);
  }
}

TEST_F(TickClockTest, AsksTheKernelOnceIn50Microseconds) {
  for (int i = 0; i < 100'000; ++i) clock_.read(true);
  const uint64_t before = Machine::exact_readings;
  const int64_t from = Machine::true_ns;
  for (int i = 0; i < 100'000; ++i) clock_.read(true);
  const auto asked = static_cast<int64_t>(Machine::exact_readings - before);
  EXPECT_GE(asked, (Machine::true_ns - from) / kLongestNs);
  EXPECT_LE(asked, (Machine::true_ns - from) / kLongestNs * 12 / 10);
}

TEST_F(TickClockTest, NeverOutlivesItsMillisecond) {
  for (int i = 0; i < 400'000; ++i) {
    const int64_t before = Machine::wall_now() / 1'000'000;
    const int64_t ms = clock_.read(true);
    ASSERT_GE(ms, before);
    ASSERT_LE(ms, Machine::wall_now() / 1'000'000);
  }
}

// TickClock measures the rate of the processor's counter against the time since boot, which is
// truncated to microseconds. The error of the truncated time depends on when the measurement
// starts, so the test tries 3000 random start times.
TEST_F(TickClockTest, NeverOutlivesItsMillisecondWheneverItsRateWasMeasured) {
  uint64_t remembered = 0;
  for (int start = 0; start < 3000; ++start) {
    Machine::reset(random_);
    Machine::instant = true;
    Machine::true_ns = static_cast<int64_t>(random_.below(1'000'000));
    Clock clock;
    for (int i = 0; i < 25; ++i) {
      clock.read(true);
      Machine::pass(49'000 + static_cast<int64_t>(random_.below(2000)));
    }
    for (int i = 0; i < 10; ++i) {
      const int64_t end = (Machine::true_ns / 1'000'000 + 1) * 1'000'000;
      Machine::pass(end - 49'990 - Machine::true_ns);
      clock.read_ms(true);
      remembered += clock.is_fresh();
      Machine::pass(end + static_cast<int64_t>(random_.below(20)) - Machine::true_ns);
      const int64_t before = Machine::wall_now() / 1'000'000;
      ASSERT_GE(clock.read(true), before);
    }
  }
  EXPECT_GT(remembered, 20'000u);
}

TEST_F(TickClockTest, TakesBackWhatWasRememberedWhenItIsNotTrustedAnyMore) {
  for (int i = 0; i < 100'000; ++i) clock_.read(true);
  clock_.read_ms(false);
  const uint64_t before = Machine::exact_readings;
  for (int i = 0; i < 10; ++i) clock_.read(false);
  EXPECT_EQ(Machine::exact_readings, before + 10);
}

TEST_F(TickClockTest, ReadsAnewOnceItIsAskedTo) {
  for (int i = 0; i < 100'000; ++i) clock_.read(true);
  Machine::wall_off_ns -= 5'000'000'000;
  EXPECT_EQ(clock_.read_ms(true), Machine::wall_now() / 1'000'000);
}

TEST_F(TickClockTest, DoesWithoutACounterThatStandsStill) {
  Machine::cycles_per_ns = 0;
  for (int i = 0; i < 100'000; ++i) {
    const int64_t ms = clock_.read(true);
    ASSERT_EQ(ms, Machine::read_at_ns / 1'000'000 + 1'700'000'000'000);
    ASSERT_FALSE(clock_.is_fresh());
  }
}

// Calls read() about every 200 ns. Returns the longest time, in ns, for which a cached reading of
// the kernel's clock was used.
int64_t greatest_age(Clock& clock, int64_t for_ns, int* old_readings = nullptr) {
  int64_t greatest = 0;
  int64_t old = 0;
  for (const int64_t end = Machine::true_ns + for_ns; Machine::true_ns < end;) {
    clock.read(true);
    const int64_t age = Machine::true_ns - Machine::read_at_ns;
    greatest = std::max(greatest, age);
    if (old_readings != nullptr && age > kLongestNs * 4 / 3 + 3000 && Machine::read_at_ns != old) {
      ++*old_readings;
      old = Machine::read_at_ns;
    }
    Machine::pass(200);
  }
  return greatest;
}

// The session is idle, and then runs on a second processor. The cycle counter of the second
// processor is behind by exactly the idle time of the session.
TEST_F(TickClockTest, DoesNotUseAReadingOnAnotherProcessor) {
  greatest_age(clock_, 10'000'000);
  for (int i = 0; i < 1000; ++i) {
    clock_.read_ms(true);
    const auto idle_ns = static_cast<int64_t>(random_.below(10'000'000'000));
    Machine::pass(idle_ns);
    Machine::processor = 1 - Machine::processor;
    Machine::counted -= static_cast<double>(idle_ns) * Machine::cycles_per_ns;
    const uint64_t before = Machine::exact_readings;
    clock_.read(true);
    ASSERT_EQ(Machine::exact_readings, before + 1) << i;
  }
}

TEST_F(TickClockTest, DoesNotUseAReadingAgainOnceTheCounterStops) {
  EXPECT_GT(greatest_age(clock_, 10'000'000), kLongestNs / 2);
  Machine::cycles_per_ns = 0;
  clock_.read(true);  // the time before the stop
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t before = Machine::exact_readings;
    clock_.read(true);
    ASSERT_EQ(Machine::exact_readings, before + 1);
    Machine::pass(static_cast<int64_t>(random_.below(10'000'000)));
  }
  Machine::cycles_per_ns = 2.5;
  EXPECT_LE(greatest_age(clock_, 10'000'000), kLongestNs);
}

TEST_F(TickClockTest, EndsAReadingWhenTheCounterJumps) {
  greatest_age(clock_, 10'000'000);
  for (int i = 0; i < 1000; ++i) {
    clock_.read_ms(true);
    clock_.read(true);
    // Simulates a faulty counter of the processor, which jumps back by about 100 ns, back by 400
    // ms, or ahead by 400 ms.
    Machine::counted += std::array{-20.0, -1e9, 1e9}[static_cast<size_t>(i % 3)] - 100 * 2.5;
    const uint64_t before = Machine::exact_readings;
    clock_.read(true);
    ASSERT_EQ(Machine::exact_readings, before + 1) << i;
    ASSERT_LE(greatest_age(clock_, 200'000), kLongestNs * 4 / 3);
  }
}

TEST_F(TickClockTest, OneReadingIsOldWhenTheCounterBecomesSlower) {
  for (const double factor : {1.2, 1.3, 1.5, 2.0, 4.0, 50.0}) {
    Machine::reset(random_);
    Clock clock;
    EXPECT_LE(greatest_age(clock, 10'000'000), kLongestNs);
    Machine::cycles_per_ns /= factor;
    int old_readings = 0;
    const int64_t age = greatest_age(clock, 20'000'000, &old_readings);
    EXPECT_LE(age, static_cast<int64_t>(kLongestNs * factor * 1.01)) << factor;
    EXPECT_LE(old_readings, 1) << factor;
    const int64_t allowed = factor > 1.4 ? kLongestNs : kLongestNs * 4 / 3;
    EXPECT_LE(greatest_age(clock, 20'000'000), allowed) << factor;
    const uint64_t before = Machine::exact_readings;
    greatest_age(clock, 10'000'000);
    EXPECT_LT(Machine::exact_readings - before, 300u) << "used again: " << factor;
  }
}

// Counts how often TickClock reads the kernel's clock in 10 ms. If the rate of the processor's
// counter is measured correctly, TickClock reads the kernel's clock every 50 us, about 200 times in
// 10 ms.
uint64_t readings_in_10_ms(Clock& clock) {
  const uint64_t before = Machine::exact_readings;
  greatest_age(clock, 10'000'000);
  return Machine::exact_readings - before;
}

TEST_F(TickClockTest, EndsReadingsEarlyUntilAFasterCounterIsMeasured) {
  for (const double factor : {1.2, 3.0}) {
    greatest_age(clock_, 10'000'000);
    Machine::cycles_per_ns *= factor;
    EXPECT_GT(readings_in_10_ms(clock_), 210u);
    EXPECT_LE(greatest_age(clock_, 250'000'000), kLongestNs);
    EXPECT_LT(readings_in_10_ms(clock_), 210u);
  }
}

TEST_F(TickClockTest, MeasuresAgainWhatWasMeasuredWithInterruptions) {
  int wrong = 0;
  for (int session = 0; session < 10; ++session) {
    Clock clock;
    Machine::interrupted = true;
    while (!clock.is_fresh()) clock.read(true);
    Machine::interrupted = false;
    wrong += readings_in_10_ms(clock) > 300;
    greatest_age(clock, 250'000'000);
    EXPECT_LT(readings_in_10_ms(clock), 210u) << session;
  }
  EXPECT_GT(wrong, 0);
}

TEST_F(TickClockTest, UsesASlowCounter) {
  Machine::cycles_per_ns = 0.024;
  for (int i = 0; i < 100'000; ++i) clock_.read(true);
  const uint64_t before = Machine::exact_readings;
  EXPECT_LE(greatest_age(clock_, 20'000'000), kLongestNs);
  EXPECT_LT(Machine::exact_readings - before, 600u);
}

TEST_F(TickClockTest, MeasuresWhatTheCounterCosts) {
  EXPECT_LE(counter_cost_ns<Machine>(), kMostCounterNs);
  Machine::counter_ns = 1000;
  EXPECT_GE(counter_cost_ns<Machine>(), 1000);
  Machine::counter_ns = 0;
  Machine::cycles_per_ns = 0;
  EXPECT_GT(counter_cost_ns<Machine>(), kMostCounterNs);
}

// Simulates random faults: clock steps in both directions, slewing, processors whose counters
// differ, and interrupted processes. The simulated machine can be suspended. While the simulated
// machine is suspended, the processor's counter runs on, stops, or begins again at 0.
TEST_F(TickClockTest, WhateverHappens) {
  uint64_t remembered = 0;
  for (uint64_t number = 0; number < 200 * kEffort; ++number) {
    Random random(number + 1);
    Machine::reset(random);
    Clock clock;
    Machine::cycles_per_ns = 0.2 + static_cast<double>(random.below(50)) / 10;
    const int64_t apart = static_cast<int64_t>(Machine::cycles_per_ns * 300'000);  // 300 us
    Machine::processor_off[1] =
        static_cast<int64_t>(random.below(2'000'000)) * apart / 1'000'000 - apart;
    Machine::interrupted = random.percent(70);
    double begun_anew = 5e11;
    for (int i = 0; i < 3000; ++i) {
      if (random.percent(1)) {
        const int64_t step = static_cast<int64_t>(random.below(20'000'000'000)) - 10'000'000'000;
        Machine::wall_off_ns += random.percent(50) ? step : step / 1'000'000;
      }
      if (random.percent(5)) Machine::wall_off_ns += static_cast<int64_t>(random.below(100));
      if (random.percent(1)) {  // the machine sleeps
        const double counted = Machine::counted;
        Machine::pass(static_cast<int64_t>(random.below(10'000'000'000)));
        if (random.percent(30)) {
          // Simulates a processor's counter that stopped while the machine was asleep. TickClock
          // cannot detect that the counter stopped during sleep, so the test makes TickClock read
          // the system clock again. Linux never uses a counter as its clock source if the counter
          // stops while the machine is asleep.
          Machine::counted = counted;
          clock.read_ms(true);
        } else if (random.percent(30)) {
          begun_anew -= 1e9;  // below all earlier values
          Machine::counted = begun_anew;
        }
      }
      Machine::pass(static_cast<int64_t>(random.below(random.percent(10) ? 300'000 : 300)));
      Machine::watch();
      const int64_t since = Machine::true_ns;
      const uint64_t exact = Machine::exact_readings;
      const int64_t ms = clock.read(true);
      remembered += Machine::exact_readings == exact;
      Machine::watch();
      // TickClock uses a clock reading for at most the time kLongestNs. The test allows 2 % more,
      // because TickClock may measure the rate of the processor's counter with an error of 2 %.
      ASSERT_TRUE(Machine::shown_since(ms, since - kLongestNs - kLongestNs / 50))
          << "schedule " << number << ", step " << i << ": " << ms;
    }
  }
  EXPECT_GT(remembered, 10'000u);
}

TEST(TickClockHere, IsTheWallClock) {
  TickClock clock;
  bool right = false;
  bool fresh = false;
  for (int i = 0; i < 100'000 && !right; ++i) {
    const int64_t before = wall_clock_ms();
    if (!clock.is_fresh()) {
      clock.read_ms(true);
      continue;
    }
    fresh = true;
    const int64_t ms = clock.ms();
    right = before - 1 <= ms && ms <= wall_clock_ms();
  }
  EXPECT_EQ(right, fresh);
}

}  // namespace
}  // namespace snowflake
