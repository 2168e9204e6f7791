#include <gtest/gtest.h>

#include "core/lease_control.hpp"
#include "core/lease_memory.hpp"
#include "lease_world.hpp"
#include "support.hpp"

namespace snowflake {
namespace {

constexpr int64_t kNow = kDefaultEpoch + 1'000'000'000;
constexpr int64_t kHour = 3'600'000;

LeaseRequest acquire(int64_t incarnation, int32_t server = 0, int64_t clock = kNow) {
  LeaseRequest request{};
  request.call = LeaseCall::acquire;
  request.server = server;
  request.incarnation = incarnation;
  request.nonce = incarnation * 1000;
  request.clock_ms = clock;
  request.length_ms = 10'100;
  request.region = kNoRegion;
  return request;
}

LeaseRequest renew(const LeaseAnswer& answer, int32_t server = 0, int64_t clock = kNow) {
  LeaseRequest request = acquire(answer.incarnation, server, clock);
  request.call = LeaseCall::renew;
  request.term = answer.term;
  request.newest = answer.number;
  request.region = answer.region;
  return request;
}

LeaseRequest give_back(const LeaseAnswer& answer, int64_t highest, int32_t server = 0) {
  LeaseRequest request = renew(answer, server);
  request.call = LeaseCall::give_back;
  request.grant = answer.grant;
  request.highest_ms = highest;
  return request;
}

struct Lease : testing::Test {
  FleetState fleet{term_at(kNow, 7), 0, kHour + 100, 10'000, false, 0};
  std::vector<LeasedRegion> regions =
      std::vector<LeasedRegion>(4, LeasedRegion{0, 0, 0, 0, 0, -1, false});

  LeaseAnswer ask(const LeaseRequest& request, int64_t clock = kNow) {
    return decide(fleet, regions, request, clock);
  }
};

TEST(LeaseTimes, AGrantIsAsLongAsTheIncarnationIsOld) {
  EXPECT_EQ(grant_length(0, kHour), 10'000);
  EXPECT_EQ(grant_length(10'001, kHour), 10'001);
  EXPECT_EQ(grant_length(5 * kHour, kHour), kHour);
  EXPECT_EQ(grant_length(0, 4'000), 4'000);
  EXPECT_EQ(grant_length(kHour, 4'000), 4'000);
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
  EXPECT_EQ(ask(acquire(2, 1)).status, AnswerStatus::full);
  EXPECT_EQ(ask(acquire(2, 1)).until_ms, first.until_ms);
  const int64_t later = first.until_ms + 5;
  const LeaseAnswer second = ask(acquire(2, 1, later), later);
  EXPECT_EQ(second.status, AnswerStatus::granted);
  EXPECT_EQ(second.floor_ms, first.until_ms);
  EXPECT_EQ(ask(renew(first, 0, later), later).status, AnswerStatus::lost);
}

TEST_F(Lease, TheEarlierClockCountsAndNoRenewalTakesBack) {
  const LeaseAnswer first = ask(acquire(1, 0, kNow + 9'000));
  EXPECT_EQ(first.until_ms, kNow + 10'100);
  const LeaseAnswer second = ask(renew(first, 0, kNow - 9'000));
  EXPECT_EQ(second.status, AnswerStatus::granted);
  EXPECT_EQ(second.until_ms, first.until_ms);
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
  const LeaseAnswer first = ask(acquire(1, 0));
  EXPECT_NE(ask(acquire(1, 1)).region, first.region);
  EXPECT_EQ(ask(renew(first, 1)).status, AnswerStatus::lost);
  EXPECT_EQ(ask(give_back(first, kNow, 1)).status, AnswerStatus::lost);
}

TEST_F(Lease, TheOldestFreeRegionIsTaken) {
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
  // Not while that would be a pause.
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
    regions.assign(1, LeasedRegion{kNow - 7, kNow - 7, 0, 0, 0, -1, false});
    const LeaseAnswer first = ask(acquire(1));
    EXPECT_EQ(first.floor_ms, kNow - 7);
    EXPECT_EQ(ask(give_back(first, highest)).status, AnswerStatus::given_back);
    EXPECT_EQ(regions[0].floor_ms, floor);
    EXPECT_EQ(regions[0].until_ms, floor);
    EXPECT_EQ(ask(give_back(first, highest)).status, AnswerStatus::lost);
  }
}

TEST_F(Lease, WhatWasGivenBackFarAheadOfTheClockIsLeftAlone) {
  regions.assign(2, LeasedRegion{kNow + kHour, kNow + kHour, 0, 3, 0, 0, true});
  const LeaseAnswer full = ask(acquire(1));
  EXPECT_EQ(full.status, AnswerStatus::full);
  EXPECT_EQ(full.until_ms, kNow + kHour - 10'000);
  regions[1].until_ms = regions[1].floor_ms = kNow + 10'000;
  EXPECT_EQ(ask(acquire(1)).region, 1);
}

TEST_F(Lease, AServerThatDoesNotStayUpHoldsFourRegions) {
  regions.resize(32, LeasedRegion{0, 0, 0, 0, 0, -1, false});
  size_t most = 0;
  for (int64_t second = 0; second < 300; second += 3) {
    const int64_t clock = kNow + second * 1000;
    LeaseRequest request = acquire(second + 1, 0, clock);
    request.length_ms = grant_length(0, kHour) + 100;
    EXPECT_EQ(ask(request, clock).status, AnswerStatus::granted);
    most = std::max(most, static_cast<size_t>(std::count_if(
                              regions.begin(), regions.end(),
                              [&](const auto& region) { return region.until_ms > clock; })));
  }
  EXPECT_EQ(most, 4u);
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

// As after a switch-over of the control database, or a clock that was ahead for a moment.
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

TEST_F(Lease, AControlDatabaseThatIsBehindHaltsForEverybody) {
  const LeaseAnswer first = ask(acquire(1));
  LeaseRequest knowing = renew(first);
  knowing.newest = fleet.newest + 1;
  EXPECT_EQ(ask(knowing).status, AnswerStatus::halted);
  EXPECT_EQ(ask(acquire(2)).status, AnswerStatus::halted);
  EXPECT_EQ(ask(give_back(first, kNow)).status, AnswerStatus::halted);
  recovered(fleet, regions, kNow + 5, 3);
  EXPECT_EQ(ask(renew(first)).status, AnswerStatus::lost);
  EXPECT_EQ(ask(acquire(2)).status, AnswerStatus::full);
  for (const auto& region : regions) {
    EXPECT_EQ(region.floor_ms, kNow + 5 + kHour + 100 + 10'000);
    EXPECT_EQ(region.incarnation, 0);
  }
}

TEST_F(Lease, TermsAreInTheOrderOfTheirRecoveries) {
  LeaseRequest request = acquire(1);
  request.term = term_at(kNow - 5, 9);  // of a recovery that this database was robbed of
  EXPECT_EQ(ask(request).status, AnswerStatus::lost);
  request.term = term_at(kNow + 5, 9);
  EXPECT_EQ(ask(request).status, AnswerStatus::halted);
  recovered(fleet, regions, kNow + 1, 1);
  EXPECT_GT(fleet.term, request.term) << "whatever the operator's watch says";
  EXPECT_EQ(ask(request).status, AnswerStatus::lost);
}

TEST_F(Lease, RecoveredNeverLowersAFloor) {
  regions[1].floor_ms = kNow + 9 * kHour;
  regions[2].until_ms = kNow + 8 * kHour;
  recovered(fleet, regions, kNow, 1);
  EXPECT_EQ(regions[1].floor_ms, kNow + 9 * kHour);
  EXPECT_EQ(regions[2].floor_ms, kNow + 8 * kHour);
  for (const auto& region : regions) {
    EXPECT_EQ(region.until_ms, region.floor_ms);
    EXPECT_EQ(region.incarnation, 0);
  }
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

TEST_F(Lease, AnEvictedRegionStaysUntilItsTime) {
  const LeaseAnswer first = ask(acquire(1));
  evict(regions[static_cast<size_t>(first.region)]);
  EXPECT_EQ(ask(renew(first)).status, AnswerStatus::lost);
  for (int64_t incarnation = 2; incarnation < 5; ++incarnation)
    EXPECT_NE(ask(acquire(incarnation)).region, first.region);
  EXPECT_EQ(ask(acquire(5)).status, AnswerStatus::full);
}

struct Answer : Lease {
  LeaseAnswer granted = ask(acquire(1));
  LeaseMemory memory{};
  Answer() { memory.begin(1, 0, 0); }
  LeaseNews read(const LeaseAnswer& answer, bool giving_back = false) const {
    return read_answer(memory.view(), giving_back, answer, kNow, kNow + 10, 10'000);
  }
};

TEST_F(Answer, IsReadOnce) {
  EXPECT_EQ(memory.view().region, kNoRegion);
  EXPECT_EQ(read(granted), LeaseNews::taken);
  memory.take(granted);
  EXPECT_EQ(memory.view().region, granted.region);
  EXPECT_EQ(memory.view().highest_ms, granted.floor_ms);
  EXPECT_EQ(read(granted), LeaseNews::stale);
  const LeaseAnswer renewed = ask(renew(granted));
  EXPECT_EQ(read(renewed), LeaseNews::extended);
}

TEST_F(Answer, OfAnEarlierTermIsOld) {
  memory.take(granted);
  memory.forget();
  memory.note(granted.term + 1, 1);
  EXPECT_EQ(read(granted), LeaseNews::stale);
  granted.term += 2;
  EXPECT_EQ(read(granted), LeaseNews::taken);
}

TEST_F(Answer, ForAnotherIncarnationIsIgnored) {
  granted.incarnation = 2;
  EXPECT_EQ(read(granted), LeaseNews::stale);
}

TEST_F(Answer, ToARenewalTakesNoRegion) {
  memory.take(granted);
  const LeaseAnswer renewed = ask(renew(granted));
  memory.forget();
  EXPECT_EQ(read(renewed), LeaseNews::stale);
  EXPECT_EQ(read(ask(acquire(1)), true), LeaseNews::stale) << "while it gives back";
  EXPECT_EQ(read(ask(acquire(1))), LeaseNews::taken);
}

TEST_F(Answer, OfAnotherHoldingEndsTheIncarnation) {
  memory.take(granted);
  LeaseAnswer other = ask(renew(granted));
  other.floor_ms += 5;
  EXPECT_EQ(read(other), LeaseNews::lost) << "somebody else had the region in between";
  other = ask(renew(granted));
  other.region = 3;
  EXPECT_EQ(read(other), LeaseNews::lost);
}

TEST_F(Answer, WithAClockThatIsApartIsNotTaken) {
  granted.clock_ms = kNow - 10'001;
  EXPECT_EQ(read(granted), LeaseNews::apart);
  granted.clock_ms = kNow + 10 + 10'001;
  EXPECT_EQ(read(granted), LeaseNews::apart);
  granted.clock_ms = kNow + 10'010;
  EXPECT_EQ(read(granted), LeaseNews::taken);
}

TEST_F(Answer, ThatRefusesChangesNothing) {
  memory.take(granted);
  LeaseAnswer refused = ask(renew(granted, 0, kNow + 99'999));
  EXPECT_EQ(read(refused), LeaseNews::refused);
  refused.status = AnswerStatus::halted;
  EXPECT_EQ(read(refused), LeaseNews::refused);
}

TEST_F(Answer, ANewIncarnationHasNothingOfTheOldOne) {
  memory.take(granted);
  memory.raise_highest(kNow + 77);
  EXPECT_EQ(memory.view().highest_ms, kNow + 77);
  memory.begin(9, granted.term, granted.number);
  const LeaseView view = memory.view();
  EXPECT_EQ(view.region, kNoRegion);
  EXPECT_EQ(view.incarnation, 9);
  EXPECT_EQ(view.until_ms, 0);
  EXPECT_EQ(view.highest_ms, 0);
  EXPECT_EQ(view.newest, granted.number);
}

// Wherever its worker is killed, an incarnation that may still be told of a region that it had
// knows what it issued there.
TEST_F(Answer, AnIncarnationForgetsNothingBeforeItIsOver) {
  for (int stores = 0;; ++stores) {
    ModelMemory killed;
    killed.begin(granted.incarnation, 1, 0);
    killed.take(granted);
    killed.raise_highest(kNow + 77);
    Kill::stores_left = stores;
    killed.begin(granted.incarnation + 1, granted.term, granted.number);
    const bool finished = !Kill::dead();
    Kill::stores_left = -1;
    const LeaseView view = killed.view();
    if (stores > 0) {
      EXPECT_EQ(view.region, kNoRegion) << stores;
    }
    if (view.incarnation == granted.incarnation) {
      EXPECT_EQ(view.highest_ms, kNow + 77) << "killed after " << stores << " stores";
    }
    if (finished) break;
  }
}

}  // namespace
}  // namespace snowflake
