// Tests the judgement: the first obstacle in one order, or none if minting is allowed.
#include "core/obstacle.hpp"

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

// The obstacles, in the order of the judgement. Each is the first one if all later ones are present
// too, and the only one if it is alone.
struct Fault {
  Obstacle obstacle;
  void (*make)(Facts&);
};

const std::vector<Fault> kFaults = {
    {Obstacle::standby, [](Facts& f) { f.recovery = true; }},
    {Obstacle::node_without_place, [](Facts& f) { f.node_without_place = true; }},
    {Obstacle::read_only_by_default, [](Facts& f) { f.read_only_by_default = true; }},
    {Obstacle::flush_stalled, [](Facts& f) { f.flush_stalled = true; }},
    {Obstacle::clock_before_epoch, [](Facts& f) { f.clock_ms = 0; }},
    {Obstacle::layout_exhausted, [](Facts& f) { f.clock_ms = kNow * 10; }},
    {Obstacle::clock_jumped, [](Facts& f) { f.clock_jumped = true; }},
    {Obstacle::unsynchronized, [](Facts& f) { f.unsynchronized = true; }},
    {Obstacle::lease_worker_gone,
     [](Facts& f) {
       f.lease_worker_runs = false;
       f.region = kNoRegion;
     }},
    {Obstacle::no_region, [](Facts& f) { f.region = kNoRegion; }},
    {Obstacle::region_begins_later, [](Facts& f) { f.region_begin_ms = kNow + 3'600'000; }},
    {Obstacle::lease_ended, [](Facts& f) { f.lease_until_ms = kNow; }},
    {Obstacle::state_missing, [](Facts& f) { f.state = Obstacle::state_missing; }},
    {Obstacle::state_locked, [](Facts& f) { f.state_locked = true; }},
    {Obstacle::seal_restored, [](Facts& f) { f.seal = Obstacle::seal_restored; }},
    {Obstacle::other_fleet, [](Facts& f) { f.fleet_remembered = 8; }},
    {Obstacle::copied, [](Facts& f) { f.moved.files = f.copies_refused = true; }},
    {Obstacle::mark_not_permanent, [](Facts& f) { f.mark = Obstacle::mark_not_permanent; }},
    {Obstacle::mark_lost, [](Facts& f) { f.mark_ms = f.highest_mark_ms = 0; }},
    {Obstacle::mark_ahead, [](Facts& f) { f.mark_ms = kNow + 3'600'000; }},
    {Obstacle::too_many_databases, [](Facts& f) { f.no_place = true; }},
    {Obstacle::clock_behind, [](Facts& f) { f.lead_ms = f.max_lead_ms + 1000; }},
    {Obstacle::commits_refused, [](Facts& f) { f.commits_refused = true; }},
};

TEST(Obstacle, NoneWhereNothingIsWrong) {
  EXPECT_EQ(obstacle(layout_from("fleet"), healthy()), Obstacle::none);
}

TEST(Obstacle, EachIsNamed) {
  for (const Fault& fault : kFaults) {
    Facts facts = healthy();
    fault.make(facts);
    EXPECT_EQ(obstacle(layout_from("fleet"), facts), fault.obstacle);
  }
}

// For each pair, the first in the list wins. Two obstacles of one fact cannot both be present.
TEST(Obstacle, TheFirstOfTwoIsNamed) {
  for (size_t first = 0; first < kFaults.size(); ++first)
    for (size_t second = first + 1; second < kFaults.size(); ++second) {
      Facts facts = healthy();
      kFaults[second].make(facts);
      kFaults[first].make(facts);
      // A clock at the end of the layout is past every lease and mark; one before the epoch is not.
      EXPECT_EQ(obstacle(layout_from("fleet"), facts), kFaults[first].obstacle)
          << first << " and " << second;
    }
}

TEST(Obstacle, LeaseIsNotLookedAtInRecoveryOrWithoutOne) {
  Facts facts = healthy();
  facts.leased = false;
  facts.region = kNoRegion;
  facts.fleet_remembered = 0;
  EXPECT_EQ(obstacle(layout_from("fleet"), facts), Obstacle::none);
  facts.fleet_remembered = 7;
  EXPECT_EQ(obstacle(layout_from("fleet"), facts), Obstacle::fleet_left);
}

TEST(Obstacle, WorkerIsMissedOnlyWhenItsLeaseIsOver) {
  Facts facts = healthy();
  facts.lease_worker_runs = false;
  EXPECT_EQ(obstacle(layout_from("fleet"), facts), Obstacle::none);
  facts.lease_until_ms = kNow;
  EXPECT_EQ(obstacle(layout_from("fleet"), facts), Obstacle::lease_worker_gone);
}

TEST(Obstacle, FleetThatWasNotHeardIsNoOther) {
  EXPECT_EQ(fleet_obstacle(true, 7, 0), Obstacle::none);
  EXPECT_EQ(fleet_obstacle(true, kUnheardFleet, 7), Obstacle::none);
  EXPECT_EQ(fleet_obstacle(true, 8, 7), Obstacle::other_fleet);
  EXPECT_EQ(fleet_obstacle(false, kUnheardFleet, 0), Obstacle::fleet_left);
  EXPECT_EQ(fleet_obstacle(false, 0, 0), Obstacle::none);
}

// A mark that the server has received covers one that was lowered, and one that it wrote ahead
// itself.
TEST(Obstacle, MarkIsLostOrAheadOnlyBeyondWhatIsKnown) {
  Facts facts = healthy();
  facts.mark_ms = 0;
  EXPECT_EQ(obstacle(layout_from("fleet"), facts), Obstacle::none);
  facts.mark_known = false;
  facts.highest_mark_ms = 0;
  EXPECT_EQ(obstacle(layout_from("fleet"), facts), Obstacle::none);
  facts = healthy();
  facts.mark_ms = facts.highest_mark_ms = kNow + 3'600'000;
  EXPECT_EQ(obstacle(layout_from("fleet"), facts), Obstacle::none);
}

// A call asks before it has all facts.
TEST(Obstacle, WhatIsNotKnownYetIsNoObstacle) {
  Facts facts{};
  facts.clock_ms = kNow;
  EXPECT_EQ(obstacle(layout_from("fleet"), facts), Obstacle::none);
}

TEST(Obstacle, LeaseIsOverForTheIdThatItDoesNotCover) {
  const Layout layout = layout_from("fleet");
  Facts facts = healthy();
  facts.position = position_below(layout, facts.lease_until_ms) - 1;
  EXPECT_EQ(obstacle(layout, facts), Obstacle::none);
  ++facts.position;
  EXPECT_EQ(obstacle(layout, facts), Obstacle::lease_ended);
  // A call that claims no id, such as observe(), needs no lease of that time.
  facts.position = 0;
  EXPECT_EQ(obstacle(layout, facts), Obstacle::none);
}

TEST(Obstacle, AheadIsMoreThanTheLeadInTicks) {
  const Layout layout = layout_from("41/5+8/10", 10);
  EXPECT_FALSE(is_ahead_of_clock(layout, kNow + 100, kNow, 100));
  EXPECT_FALSE(is_ahead_of_clock(layout, kNow + 100, kNow + 9, 109));
  EXPECT_TRUE(is_ahead_of_clock(layout, kNow + 101, kNow, 100));
  EXPECT_FALSE(is_ahead_of_clock(layout, layout.epoch_ms, 0, 100));
  EXPECT_TRUE(is_ahead_of_clock(layout, layout.epoch_ms + 1, 0, 100));
}

TEST(Obstacle, LoadAloneDrivesNothingBehind) {
  Facts facts = healthy();
  const Layout layout = layout_from("fleet");
  facts.lead_ms = facts.max_lead_ms + layout.tick_ms;
  EXPECT_EQ(obstacle(layout, facts), Obstacle::none);
  ++facts.lead_ms;
  EXPECT_EQ(obstacle(layout, facts), Obstacle::clock_behind);
}

}  // namespace
}  // namespace snowflake
