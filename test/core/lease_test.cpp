#include "lease_support.hpp"

namespace snowflake {
namespace {

TEST(LeaseTimes, AGrantIsAsLongAsTheIncarnationIsOld) {
  EXPECT_EQ(grant_length(0, kHour), 60'000);
  EXPECT_EQ(grant_length(60'001, kHour), 60'001);
  EXPECT_EQ(grant_length(5 * kHour, kHour), kHour);
  EXPECT_EQ(grant_length(0, 4'000), 4'000);
  EXPECT_EQ(grant_length(int64_t{8} * 24 * kHour, kLongestLeaseMs), kLongestLeaseMs);
}

TEST(LeaseTimes, AnAnswerThatTookLongIsNoSkew) {
  EXPECT_EQ(clocks_apart(100, 100, 100), 0);
  EXPECT_EQ(clocks_apart(100, 60'000, 60'100), 0);
  EXPECT_EQ(clocks_apart(100, 40, 200), 60);
  EXPECT_EQ(clocks_apart(100, 250, 200), -50);
}

TEST(LeaseTimes, TwoHoldersShareNoTick) {
  const Layout layout = layout_from("30/3+1/4", 1000);
  for (int64_t ms = layout.epoch_ms + 5000; ms < layout.epoch_ms + 7001; ++ms)
    ASSERT_LE(position_below(layout, ms), position_from(layout, ms)) << ms;
  EXPECT_EQ(position_below(layout, layout.epoch_ms + 5999), layout.first_position(5));
  EXPECT_EQ(position_from(layout, layout.epoch_ms + 5001), layout.first_position(6));
  EXPECT_EQ(position_below(layout, 0), 0u);
  EXPECT_EQ(position_from(layout, 0), 0u);
  EXPECT_EQ(position_from(layout, INT64_MAX / 4), layout.end_position());
}

TEST(LeaseTimes, TheMarkStaysWithinTheLease) {
  const Layout layout = layout_from("30/3+1/4", 1000);
  const int64_t base = layout.epoch_ms;
  EXPECT_EQ(mark_within_lease(layout, layout.first_position(5), 2000, base + 60'000), base + 7000);
  EXPECT_EQ(mark_within_lease(layout, layout.first_position(5), 2000, base + 6'500), base + 6500);
  EXPECT_EQ(mark_within_lease(layout, layout.first_position(5), 2000, base + 5'999), 0);
  EXPECT_EQ(covered_until(5, 3), 3);
  EXPECT_EQ(covered_until(3, 5), 3);
}

TEST_F(Lease, TheNextHolderBeginsWhereTheLastOneEnded) {
  regions.resize(1);
  const LeaseAnswer first = ask(acquire(1));
  EXPECT_EQ(first.status, AnswerStatus::granted);
  EXPECT_EQ(first.until_ms, kNow + 10'100);
  EXPECT_EQ(ask(acquire(2)).status, AnswerStatus::full);
  EXPECT_EQ(ask(acquire(2)).until_ms, first.until_ms);
  const int64_t later = first.until_ms + 5;
  const LeaseAnswer second = ask(acquire(2, 0, later), later);
  EXPECT_EQ(second.status, AnswerStatus::granted);
  EXPECT_EQ(second.floor_ms, first.until_ms);
  EXPECT_EQ(ask(renew(first, 0, later), later).status, AnswerStatus::lost);
}

TEST_F(Lease, TheEarlierClockCountsAndNoRenewalTakesBack) {
  const LeaseAnswer first = ask(acquire(1, 0, kNow + 9'000));
  EXPECT_EQ(first.until_ms, kNow + 10'100);
  const LeaseAnswer second = ask(renew(first, 0, kNow - 9'000));
  EXPECT_EQ(second.status, AnswerStatus::granted);
  EXPECT_EQ(second.until_ms, kNow + 1'100);
  EXPECT_EQ(regions[static_cast<size_t>(first.region)].until_ms, first.until_ms);
  LeaseMemory memory{};
  memory.begin(1, LeaseAnswer{}, [] {});
  memory.take(first);
  memory.extend(second);
  EXPECT_EQ(memory.view().until_ms, first.until_ms);
  EXPECT_EQ(second.grant, first.grant);
  EXPECT_GT(second.number, first.number);
}

TEST_F(Lease, NoGrantIsLongerThanTheFleetAllows) {
  LeaseRequest request = acquire(1);
  request.length_ms = INT64_MAX / 2;
  EXPECT_EQ(ask(request).until_ms, kNow + kHour + 100);
  request = acquire(2);
  request.length_ms = -5;
  EXPECT_EQ(ask(request).until_ms, kNow);
}

TEST_F(Lease, AskedAgainItIsTheSameRegionAndAnotherGrant) {
  const LeaseAnswer first = ask(acquire(1));
  const LeaseAnswer again = ask(acquire(1));
  EXPECT_EQ(again.region, first.region);
  EXPECT_GT(again.grant, first.grant);
  EXPECT_EQ(ask(give_back(first, kNow)).status, AnswerStatus::lost);
  EXPECT_EQ(ask(give_back(again, kNow)).status, AnswerStatus::given_back);
}

TEST_F(Lease, NobodySpeaksForAnother) {
  const LeaseAnswer first = ask_for({0, 1}, acquire(1, 0));
  EXPECT_EQ(ask(renew(first, 1)).status, AnswerStatus::taken);
  EXPECT_EQ(ask(give_back(first, kNow, 1)).status, AnswerStatus::lost);
}

TEST_F(Lease, ARegionOfAnotherServerIsNeverGranted) {
  EXPECT_EQ(ask_for({0, 1}, acquire(1, 0)).region, 0);
  EXPECT_EQ(ask_for({1, 2}, acquire(2, 1)).status, AnswerStatus::taken) << "free, but not its own";
  EXPECT_EQ(ask_for({2, 3}, acquire(2, 1)).region, 2);
  EXPECT_EQ(ask_for({0, 1}, acquire(3, 0)).region, 1);
  EXPECT_EQ(ask_for({0, 1}, acquire(4, 0)).status, AnswerStatus::full);
  // If the configuration of a server no longer contains a region, other servers may use the region
  // after its lease has ended.
  const int64_t later = kNow + 2 * kHour;
  EXPECT_EQ(ask_for({0}, acquire(5, 0, later), later).region, 0);
  EXPECT_EQ(ask_for({1}, acquire(6, 1, later), later).status, AnswerStatus::taken) << "held";
  revoke(regions[1]);
  EXPECT_EQ(ask_for({0}, acquire(5, 0, later), later).region, 0);
  EXPECT_EQ(ask_for({1}, acquire(6, 1, later), later).region, 1);
}

TEST_F(Lease, ARegionIsFreeWhenBothClocksSaySo) {
  regions.resize(1);
  const LeaseAnswer first = ask(acquire(1));
  const int64_t ahead = first.until_ms + 5000;
  EXPECT_EQ(ask(acquire(2, 0, kNow + 5000), ahead).status, AnswerStatus::full);
  EXPECT_EQ(ask(renew(first, 0, kNow + 5000), kNow + 5000).status, AnswerStatus::granted);
}

TEST_F(Lease, TheOldestFreeRegionIsTaken) {
  for (LeasedRegion& region : regions) region.state = RegionState::revoked;
  regions[2].until_ms = kNow - 50;
  regions[3].until_ms = kNow - 60;
  regions[0].until_ms = kNow - 40;
  regions[1].until_ms = kNow + 40;
  EXPECT_EQ(ask(acquire(1)).region, 3);
  EXPECT_EQ(ask(acquire(2)).region, 2);
  EXPECT_EQ(ask(acquire(3)).region, 0);
  const LeaseAnswer full = ask(acquire(4));
  EXPECT_EQ(full.status, AnswerStatus::full);
  EXPECT_EQ(full.until_ms, kNow + 40);
}

TEST_F(Lease, ARestartPrefersTheRegionThatItGaveBack) {
  const LeaseAnswer first = ask(acquire(1, 0));
  ask(give_back(first, kNow + 1000));
  // If the requesting server would have to wait before it could mint ids in a returned region, the
  // lease server prefers another region.
  const LeaseAnswer second = ask(acquire(2, 0));
  EXPECT_NE(second.region, first.region);
  const LeaseAnswer third = ask(acquire(3, 0, kNow + 1000), kNow + 1000);
  EXPECT_EQ(third.region, first.region);
  EXPECT_EQ(third.floor_ms, kNow + 1000);
}

TEST_F(Lease, ItIsGivenBackAtTheHighestLimitWithinTheLease) {
  for (const auto& [highest, floor] :
       {std::pair{kNow + 500, kNow + 500}, std::pair{kNow + 99'000, kNow + 10'100},
        std::pair{int64_t{5}, kNow - 7}}) {
    regions.assign(1, LeasedRegion{kNow - 7, kNow - 7});
    const LeaseAnswer first = ask(acquire(1));
    EXPECT_EQ(first.floor_ms, kNow - 7);
    EXPECT_EQ(ask(give_back(first, highest)).status, AnswerStatus::given_back);
    EXPECT_EQ(regions[0].floor_ms, floor);
    EXPECT_EQ(regions[0].until_ms, floor);
    EXPECT_EQ(ask(give_back(first, highest)).status, AnswerStatus::lost);
  }
}

TEST_F(Lease, WhatWasGivenBackFarAheadOfTheClockIsLeftAlone) {
  regions.assign(2, LeasedRegion{kNow + kHour, kNow + kHour, 0, 3});
  const LeaseAnswer full = ask(acquire(1));
  EXPECT_EQ(full.status, AnswerStatus::full);
  EXPECT_EQ(full.until_ms, kNow + kHour - 10'000);
  regions[1].until_ms = regions[1].floor_ms = kNow + 10'000;
  EXPECT_EQ(ask(acquire(1)).region, 1);
}

TEST_F(Lease, AFreshServerNeedsNobodyForMoreThanHalfAMinute) {
  LeaseRequest request = acquire(1);
  request.length_ms = kHour;
  request.age_ms = 0;
  const LeaseAnswer first = ask(request);
  const int64_t renewal = renew_after(first.until_ms - kNow);
  EXPECT_GE(first.until_ms - kNow - renewal, 30'000);
}

TEST_F(Lease, ACopyOfTheMemoryOfARunningServerIsFound) {
  LeaseRequest original = acquire(1);
  original.nonce = 10;
  LeaseRequest next = renew(ask(original));
  next.acked = 10;
  LeaseRequest copy = next;
  next.nonce = 11;
  const LeaseAnswer answer = ask(next);
  EXPECT_EQ(answer.status, AnswerStatus::granted);
  EXPECT_EQ(ask(next).status, AnswerStatus::granted) << "the answer was lost";
  copy.nonce = 12;
  EXPECT_EQ(ask(copy).status, AnswerStatus::lost);
  LeaseRequest restarted = next;
  restarted.acked = 0;
  restarted.nonce = 77;
  EXPECT_EQ(ask(restarted).status, AnswerStatus::granted) << "a new worker knows no nonce";
}

// If the lease server refuses a request, the requesting server must keep the random number (nonce)
// of its last granted request.
TEST_F(Lease, ARefusalAcknowledgesNothing) {
  LeaseNonce nonce{10, 0};
  LeaseRequest request = acquire(1);
  request.nonce = nonce.next;
  const LeaseAnswer first = ask(request);
  nonce.answered(first.status, 11);
  for (const bool halts : {false, true}) {
    request = renew(first, 0, halts ? kNow : kNow + 10'001);
    request.nonce = nonce.next;
    request.acked = nonce.acked;
    fleet.halted = halts;
    const LeaseAnswer refused = ask(request);
    EXPECT_EQ(refused.status, halts ? AnswerStatus::halted : AnswerStatus::clock_ahead);
    nonce.answered(refused.status, 12);
    fleet.halted = false;
    request.clock_ms = kNow;
    request.nonce = nonce.next;
    request.acked = nonce.acked;
    const LeaseAnswer renewed = ask(request);
    EXPECT_EQ(renewed.status, AnswerStatus::granted);
    EXPECT_EQ(renewed.grant, first.grant);
    EXPECT_EQ(renewed.region, first.region);
    nonce.answered(renewed.status, 13);
  }
}

TEST_F(Lease, ALeaseServerThatIsBehindHaltsForEverybody) {
  const LeaseAnswer first = ask(acquire(1));
  LeaseRequest knowing = renew(first);
  knowing.newest = fleet.newest + 1;
  EXPECT_EQ(ask(knowing).status, AnswerStatus::halted);
  EXPECT_EQ(ask(acquire(2)).status, AnswerStatus::halted);
  EXPECT_EQ(ask(give_back(first, kNow)).status, AnswerStatus::halted);
  confirm_data_loss(fleet, regions, kNow + 5, 3, false);
  EXPECT_EQ(ask(renew(first)).status, AnswerStatus::lost);
  EXPECT_EQ(ask(acquire(2)).status, AnswerStatus::full);
  for (const auto& region : regions) {
    EXPECT_EQ(region.until_ms, kNow + 5 + kHour + 100 + 10'000);
    EXPECT_EQ(region.incarnation, 0);
  }
}

TEST_F(Lease, TermsAreInTheOrderOfTheirRecoveries) {
  LeaseRequest request = acquire(1);
  request.term = term_at(kNow - 5, 9);
  EXPECT_EQ(ask(request).status, AnswerStatus::lost);
  request.term = term_at(kNow + 5, 9);
  EXPECT_EQ(ask(request).status, AnswerStatus::halted);
  confirm_data_loss(fleet, regions, kNow + 1, 1, true);
  EXPECT_GT(fleet.term, request.term) << "whatever the operator's watch says";
  EXPECT_EQ(ask(request).status, AnswerStatus::lost);
}

TEST_F(Lease, AConfirmedLossNeverLowersAFloor) {
  regions[1].floor_ms = regions[1].until_ms = kNow + 9 * kHour;
  regions[2].until_ms = kNow + 8 * kHour;
  confirm_data_loss(fleet, regions, kNow, 1, true);
  EXPECT_EQ(regions[1].until_ms, kNow + 9 * kHour);
  EXPECT_EQ(regions[2].until_ms, kNow + 8 * kHour);
  for (const auto& region : regions) EXPECT_EQ(region.incarnation, 0);
}

TEST_F(Lease, ADeadHoldersRegionEndsBeyondLeadReserveAndSkew) {
  LeaseRequest request = acquire(1);
  request.length_ms = kHour;
  const LeaseAnswer held = ask(request);
  LeasedRegion& region = regions[static_cast<size_t>(held.region)];
  confirm_dead(fleet, region, kNow + 5, 1'100);
  EXPECT_EQ(region.until_ms, kNow + 5 + 1'100 + 10'000);
  EXPECT_EQ(ask(renew(held)).status, AnswerStatus::lost);
  confirm_dead(fleet, region, kNow + 5'000, 1'100);
  EXPECT_EQ(region.until_ms, kNow + 5 + 1'100 + 10'000) << "never later";
  regions[3].floor_ms = regions[3].until_ms = kNow + kHour;
  confirm_dead(fleet, regions[3], kNow, 0);
  EXPECT_EQ(regions[3].until_ms, kNow + kHour) << "never before the holder began";
}

TEST_F(Lease, NoOperatorGoesBeforeTheRecordedTime) {
  EXPECT_FALSE(clock_is_behind(fleet, 5));
  ask(acquire(1, 0, kNow + 3000));
  EXPECT_FALSE(clock_is_behind(fleet, kNow - 10'000)) << "the earlier clock is on record";
  EXPECT_TRUE(clock_is_behind(fleet, kNow - 10'001));
  confirm_data_loss(fleet, regions, kNow - kHour, 1, true);
  EXPECT_FALSE(clock_is_behind(fleet, kNow - kHour)) << "the operator's own clock is trusted";
}

TEST_F(Lease, WhoseClockIsAheadIsRefused) {
  EXPECT_EQ(ask(acquire(1, 0, kNow + 10'001)).status, AnswerStatus::clock_ahead);
  EXPECT_EQ(fleet.newest, 0);
  const LeaseAnswer first = ask(acquire(1, 0, kNow + 10'000));
  EXPECT_EQ(first.status, AnswerStatus::granted);
  EXPECT_EQ(ask(renew(first, 0, kNow + 10'001)).status, AnswerStatus::clock_ahead);
  LeaseRequest back = give_back(first, kNow);
  back.clock_ms = kNow + kHour;
  EXPECT_EQ(ask(back).status, AnswerStatus::given_back);
}

TEST_F(Lease, ARevokedRegionStaysUntilItsTime) {
  const LeaseAnswer first = ask(acquire(1));
  revoke(regions[static_cast<size_t>(first.region)]);
  EXPECT_EQ(ask(renew(first)).status, AnswerStatus::lost);
  for (int64_t incarnation = 2; incarnation < 5; ++incarnation)
    EXPECT_NE(ask(acquire(incarnation)).region, first.region);
  EXPECT_EQ(ask(acquire(5)).status, AnswerStatus::full);
}

}  // namespace
}  // namespace snowflake
