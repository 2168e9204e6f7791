#include "core/blocker.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "support.hpp"

namespace snowflake {
namespace {

constexpr int64_t kNow = 1'800'000'000'000;

Facts healthy() {
  Facts facts{};
  facts.clock_ms = kNow;
  facts.position = position_below(layout_from("fleet"), kNow);
  facts.leased = true;
  facts.lease_worker_runs = true;
  facts.region = 3;
  facts.lease_until_ms = kNow + 1000;
  facts.fleet_remembered = facts.fleet_present = 7;
  facts.mark_known = true;
  facts.mark_ms = facts.highest_mark_ms = kNow + 1000;
  facts.max_lead_ms = 1000;
  return facts;
}

struct Fault {
  Blocker blocker;
  void (*make)(Facts&);
};

const std::vector<Fault> kFaults = {
    {Blocker::standby, [](Facts& f) { f.recovery = true; }},
    {Blocker::setting_invalid, [](Facts& f) { f.setting_invalid = true; }},
    {Blocker::node_without_origin, [](Facts& f) { f.node_without_origin = true; }},
    {Blocker::read_only_by_default, [](Facts& f) { f.read_only_by_default = true; }},
    {Blocker::flush_stalled, [](Facts& f) { f.flush_stalled = true; }},
    {Blocker::clock_before_epoch, [](Facts& f) { f.clock_ms = 0; }},
    {Blocker::layout_exhausted, [](Facts& f) { f.clock_ms = kNow * 10; }},
    {Blocker::clock_jumped, [](Facts& f) { f.clock_jumped = true; }},
    {Blocker::unsynchronized, [](Facts& f) { f.unsynchronized = true; }},
    {Blocker::lease_worker_gone,
     [](Facts& f) {
       f.lease_worker_runs = false;
       f.region = kNoRegion;
     }},
    {Blocker::no_region, [](Facts& f) { f.region = kNoRegion; }},
    {Blocker::region_begins_later, [](Facts& f) { f.region_begin_ms = kNow + 3'600'000; }},
    {Blocker::lease_ended, [](Facts& f) { f.lease_until_ms = kNow; }},
    {Blocker::state_missing, [](Facts& f) { f.state = Blocker::state_missing; }},
    {Blocker::state_locked, [](Facts& f) { f.state_locked = true; }},
    {Blocker::seal_restored, [](Facts& f) { f.seal = Blocker::seal_restored; }},
    {Blocker::region_outside_layout, [](Facts& f) { f.region = 32; }},
    {Blocker::layout_not_leased, [](Facts& f) { f.leased_seal = 1; }},
    {Blocker::other_fleet, [](Facts& f) { f.fleet_remembered = 8; }},
    {Blocker::cloned, [](Facts& f) { f.moved.files = f.clones_refused = true; }},
    {Blocker::mark_not_permanent, [](Facts& f) { f.mark = Blocker::mark_not_permanent; }},
    {Blocker::mark_lost, [](Facts& f) { f.mark_ms = f.highest_mark_ms = 0; }},
    {Blocker::mark_ahead, [](Facts& f) { f.mark_ms = kNow + 3'600'000; }},
    {Blocker::too_many_databases, [](Facts& f) { f.no_slot = true; }},
    {Blocker::clock_behind, [](Facts& f) { f.lead_ms = f.max_lead_ms + 1000; }},
    {Blocker::commits_refused, [](Facts& f) { f.commits_refused = true; }},
};

TEST(Blocker, NoneWhereNothingIsWrong) {
  EXPECT_EQ(blocker(layout_from("fleet"), healthy()), Blocker::none);
}

TEST(Blocker, EachIsNamed) {
  for (const Fault& fault : kFaults) {
    Facts facts = healthy();
    fault.make(facts);
    EXPECT_EQ(blocker(layout_from("fleet"), facts), fault.blocker);
  }
}

// If several states prevent minting (blockers), the function blocker() must return the most
// important of them.
TEST(Blocker, TheFirstOfTwoIsNamed) {
  for (size_t first = 0; first < kFaults.size(); ++first)
    for (size_t second = first + 1; second < kFaults.size(); ++second) {
      Facts facts = healthy();
      kFaults[second].make(facts);
      kFaults[first].make(facts);
      // A clock at the end of the layout's time range is later than every lease and high-water
      // mark.
      EXPECT_EQ(blocker(layout_from("fleet"), facts), kFaults[first].blocker)
          << first << " and " << second;
    }
}

TEST(Blocker, LeaseIsNotLookedAtInRecoveryOrWithoutOne) {
  Facts facts = healthy();
  facts.leased = false;
  facts.region = kNoRegion;
  facts.fleet_remembered = 0;
  EXPECT_EQ(blocker(layout_from("fleet"), facts), Blocker::none);
  facts.fleet_remembered = 7;
  EXPECT_EQ(blocker(layout_from("fleet"), facts), Blocker::fleet_left);
}

TEST(Blocker, StaticRegionMayBeginLater) {
  Facts facts = healthy();
  facts.leased = false;
  facts.fleet_remembered = 0;
  facts.region_begin_ms = kNow + 3'600'000;
  EXPECT_EQ(blocker(layout_from("fleet"), facts), Blocker::region_begins_later);
}

TEST(Blocker, WorkerIsMissedOnlyWhenItsLeaseIsOver) {
  Facts facts = healthy();
  facts.lease_worker_runs = false;
  EXPECT_EQ(blocker(layout_from("fleet"), facts), Blocker::none);
  facts.lease_until_ms = kNow;
  EXPECT_EQ(blocker(layout_from("fleet"), facts), Blocker::lease_worker_gone);
}

TEST(Blocker, FleetThatWasNotHeardIsNoOther) {
  EXPECT_EQ(fleet_blocker(true, 7, 0), Blocker::none);
  EXPECT_EQ(fleet_blocker(true, kUnheardFleet, 7), Blocker::none);
  EXPECT_EQ(fleet_blocker(true, 8, 7), Blocker::other_fleet);
  EXPECT_EQ(fleet_blocker(false, kUnheardFleet, 0), Blocker::fleet_left);
  EXPECT_EQ(fleet_blocker(false, 0, 0), Blocker::none);
}

// If the stored high-water mark was lowered, a database still mints if shared memory contains the
// former mark. A high-water mark ahead of the clock does not prevent minting if the running server
// has written the mark.
TEST(Blocker, MarkIsLostOrAheadOnlyBeyondWhatIsKnown) {
  Facts facts = healthy();
  facts.mark_ms = 0;
  EXPECT_EQ(blocker(layout_from("fleet"), facts), Blocker::none);
  facts.mark_known = false;
  facts.highest_mark_ms = 0;
  EXPECT_EQ(blocker(layout_from("fleet"), facts), Blocker::none);
  facts = healthy();
  facts.mark_ms = facts.highest_mark_ms = kNow + 3'600'000;
  EXPECT_EQ(blocker(layout_from("fleet"), facts), Blocker::none);
}

// The function blocker() returns the reason why a database cannot mint ids. A fact that was not
// gathered yet (a member of Facts that is 0) must not prevent minting.
TEST(Blocker, WhatIsNotKnownYetIsNoBlocker) {
  Facts facts{};
  facts.clock_ms = kNow;
  EXPECT_EQ(blocker(layout_from("fleet"), facts), Blocker::none);
}

TEST(Blocker, LeaseIsOverForTheIdThatItDoesNotCover) {
  const Layout layout = layout_from("fleet");
  Facts facts = healthy();
  facts.position = position_below(layout, facts.lease_until_ms) - 1;
  EXPECT_EQ(blocker(layout, facts), Blocker::none);
  ++facts.position;
  EXPECT_EQ(blocker(layout, facts), Blocker::lease_ended);
  // A call such as observe(), which claims no id, needs no lease.
  facts.position = 0;
  EXPECT_EQ(blocker(layout, facts), Blocker::none);
}

TEST(Blocker, AheadIsMoreThanTheLeadInTicks) {
  const Layout layout = layout_from("41/5+8/10", 10);
  EXPECT_FALSE(is_ahead_of_clock(layout, kNow + 100, kNow, 100));
  EXPECT_FALSE(is_ahead_of_clock(layout, kNow + 100, kNow + 9, 109));
  EXPECT_TRUE(is_ahead_of_clock(layout, kNow + 101, kNow, 100));
  EXPECT_FALSE(is_ahead_of_clock(layout, layout.epoch_ms, 0, 100));
  EXPECT_TRUE(is_ahead_of_clock(layout, layout.epoch_ms + 1, 0, 100));
}

TEST(Blocker, LoadAloneDrivesNothingBehind) {
  Facts facts = healthy();
  const Layout layout = layout_from("fleet");
  facts.lead_ms = facts.max_lead_ms + layout.tick_ms;
  EXPECT_EQ(blocker(layout, facts), Blocker::none);
  ++facts.lead_ms;
  EXPECT_EQ(blocker(layout, facts), Blocker::clock_behind);
}

}  // namespace
}  // namespace snowflake
