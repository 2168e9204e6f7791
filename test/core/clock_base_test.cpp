// Tests the conditions under which a starting server treats its clock as wrong, and later accepts a
// corrected clock.
#include "core/clock_base.hpp"

#include <gtest/gtest.h>

namespace snowflake {
namespace {

constexpr int64_t kNow = 1'800'000'000'000;
constexpr int64_t kMinute = 60'000;
constexpr int64_t kAhead = 2000;
constexpr int64_t kJump = kMinute;
constexpr int64_t kDay = 1440 * kMinute;

// Simulates a server that started with its wall clock `off_ms` away from the true time.
struct Server {
  explicit Server(int64_t start_off_ms) : off_ms(start_off_ms) { base.start(offset_us()); }

  int64_t offset_us() const { return (kNow + off_ms) * 1000; }  // the machine booted at kNow
  int64_t clock_ms() const { return kNow + off_ms + up_ms; }
  int64_t true_ms() const { return kNow + up_ms; }
  int64_t drift_ms() const { return base.drift_us(offset_us()) / 1000; }
  void see(int64_t mark_ms) { base.record_mark(mark_ms, up_ms * 1000, kAhead, kJump); }
  bool replace() { return base.replace(offset_us(), clock_ms(), kAhead); }

  ClockBase base{};
  int64_t off_ms;
  int64_t up_ms = 0;
};

TEST(ClockBase, DriftIsMeasuredFromTheStart) {
  Server s(-kDay);
  EXPECT_EQ(s.drift_ms(), 0);
  s.off_ms += 5000;
  EXPECT_EQ(s.drift_ms(), 5000);
  s.off_ms -= 9000;
  EXPECT_EQ(s.drift_ms(), -4000);
}

TEST(ClockBase, AClockThatWasBehindTheMarkIsBelievedWhereItReachesIt) {
  Server s(-400 * kDay);
  s.see(kNow - kMinute);
  EXPECT_FALSE(s.replace()) << "it is not there yet";
  s.off_ms = 0;
  EXPECT_TRUE(s.replace());
  EXPECT_EQ(s.drift_ms(), 0);
  s.off_ms = 9000;
  EXPECT_EQ(s.drift_ms(), 9000) << "the guard measures from there on";
}

TEST(ClockBase, WithinWhatMarksAreWrittenAhead) {
  Server s(-400 * kDay);
  s.see(kNow);
  s.off_ms = -kAhead - 1;
  EXPECT_FALSE(s.replace());
  s.off_ms = -kAhead;
  EXPECT_TRUE(s.replace());
}

TEST(ClockBase, AlsoWhereTheMarkIsSeenOnlyThen) {
  Server s(-400 * kDay);
  s.up_ms = 30 * kMinute;
  s.off_ms = 0;
  s.see(kNow - kMinute);
  EXPECT_TRUE(s.replace());
}

TEST(ClockBase, AMarkThatWasSeenIsRemembered) {
  Server s(-10 * kMinute);
  s.see(kNow);
  s.up_ms = 15 * kMinute;
  s.off_ms = 0;
  s.see(kNow);
  EXPECT_TRUE(s.replace());
}

TEST(ClockBase, AStepToBeforeTheMarkHasJumped) {
  Server s(0);
  s.see(kNow + 70 * 365 * kDay);  // a high-water mark that was written while the clock was wrong
  s.off_ms = 30 * 365 * kDay;
  EXPECT_FALSE(s.replace());
  EXPECT_EQ(s.drift_ms(), s.off_ms);
}

TEST(ClockBase, TheLatestMarkCounts) {
  Server s(-400 * kDay);
  s.see(kNow - kMinute);
  s.see(kNow + 70 * 365 * kDay);
  s.see(kNow - kDay);
  s.off_ms = 0;
  EXPECT_FALSE(s.replace()) << "marks that contradict each other are for an operator";
}

TEST(ClockBase, OnceOnly) {
  Server s(-kDay);
  s.see(kNow);
  s.off_ms = 0;
  EXPECT_TRUE(s.replace());
  s.off_ms = 400 * kDay;
  s.see(kNow + 400 * kDay);
  EXPECT_FALSE(s.replace()) << "a later jump finds a later mark, and is not believed for it";
  EXPECT_EQ(s.drift_ms(), 400 * kDay);
}

TEST(ClockBase, MarksThatThisLifeCanHaveWrittenSayNothing) {
  Server s(0);
  s.up_ms = 3 * kDay;
  s.see(s.true_ms() + kAhead + kJump);  // greatest high-water mark that is not too far ahead
  s.off_ms = 400 * kDay;
  EXPECT_FALSE(s.replace());
  EXPECT_EQ(s.drift_ms(), 400 * kDay);
  s.see(s.true_ms() + kAhead + kJump + 1);
  EXPECT_TRUE(s.replace());
}

TEST(ClockBase, WhatWasMintedVouchesForTheClock) {
  Server s(0);
  s.base.record_use();
  s.see(kNow + kDay);
  s.off_ms = 2 * kDay;
  EXPECT_FALSE(s.replace());
  EXPECT_TRUE(s.base.is_in_use());
}

TEST(ClockBase, WhatWasMintedMeanwhileVouchesToo) {
  Server s(0);
  s.see(kNow + kDay);
  s.base.record_use();
  s.off_ms = 2 * kDay;
  EXPECT_FALSE(s.replace());
}

TEST(ClockBase, WhatWasAcceptedIsTheBase) {
  Server s(-kDay);
  s.see(kNow);
  s.base.accept(s.offset_us());
  s.off_ms = 0;
  EXPECT_FALSE(s.replace());
  EXPECT_EQ(s.drift_ms(), kDay);
}

TEST(ClockBase, AMarkOfAnyNumberIsHarmless) {
  Server s(0);
  s.see(INT64_MAX);
  EXPECT_FALSE(s.base.is_in_use());
  EXPECT_FALSE(s.replace());
  s.see(0);
  EXPECT_FALSE(s.replace());
}

TEST(ClockBase, AClockOf1970IsAClock) {
  Server s(-kNow);
  EXPECT_FALSE(s.base.is_in_use());
  s.see(kNow);
  EXPECT_FALSE(s.replace());
  s.off_ms = 0;
  EXPECT_TRUE(s.replace());
}

}  // namespace
}  // namespace snowflake
