// Tests which leases continue after a recovery or failover of the lease server.
#include "lease_support.hpp"

namespace snowflake {
namespace {

struct Recovery : Lease {
  LeaseAnswer held = granted_for(kHour);
  LeaseAnswer granted_for(int64_t length) {
    LeaseRequest request = acquire(1);
    request.length_ms = length;
    return ask(request);
  }
  void forget_everything(bool silent) {
    regions.assign(4, LeasedRegion{});
    fleet = new_fleet();
    confirm_data_loss(fleet, regions, kNow, 1, silent);
  }
  // Sends a request to the lease server. If the lease server answers term_over, the function
  // repeats the request with the term from the answer.
  LeaseAnswer keep_lease(LeaseRequest request, int64_t clock = kNow) {
    const LeaseAnswer answer = ask(request, clock);
    if (answer.status != AnswerStatus::term_over) return answer;
    request.term = answer.term;
    request.newest = answer.number;
    return ask(request, clock);
  }
};

TEST_F(Recovery, WhoHoldsALeaseGoesOn) {
  forget_everything(true);
  const LeaseAnswer over = ask(renew(held));
  EXPECT_EQ(over.status, AnswerStatus::term_over);
  EXPECT_EQ(over.region, kNoRegion);
  EXPECT_EQ(regions[static_cast<size_t>(held.region)].incarnation, 0) << "before it is said again";
  const LeaseAnswer again = keep_lease(renew(held));
  EXPECT_EQ(again.status, AnswerStatus::granted);
  EXPECT_EQ(again.region, held.region);
  EXPECT_EQ(again.floor_ms, held.floor_ms);
  EXPECT_EQ(again.until_ms, kNow + 10'100);
  EXPECT_GT(again.term, held.term);
  LeaseMemory memory{};
  memory.begin(1, LeaseAnswer{}, [] {});
  memory.take(held);
  EXPECT_EQ(read_answer(memory.view(), false, again, kNow, kNow, 10'000), LeaseEvent::extended);
  // If a server repeats a renewal because the first answer was lost, the lease server must grant
  // the renewal again. The lease server must refuse a renewal from a copy of the server.
  EXPECT_EQ(ask(renew(held)).status, AnswerStatus::granted);
  LeaseRequest copy = renew(held);
  copy.nonce = 78;
  copy.acked = 77;
  EXPECT_EQ(ask(copy).status, AnswerStatus::lost);
  EXPECT_EQ(ask(acquire(2)).status, AnswerStatus::full) << "of the others nobody knows";
  LeaseRequest back = give_back(again, kNow + 3);
  EXPECT_EQ(ask(back).status, AnswerStatus::given_back);
  EXPECT_EQ(regions[static_cast<size_t>(held.region)].until_ms, kNow + 3);
  EXPECT_EQ(ask(acquire(2)).region, held.region);
}

// A renewal of a lease arrives after its region was given back and leased to another server run
// (incarnation). The lease server must not grant the region to the late renewal.
TEST_F(Recovery, ARegionThatWasGivenBackIsNobodys) {
  regions.resize(1);
  const LeaseRequest early = renew(held);
  ASSERT_EQ(ask(give_back(held, kNow + 3)).status, AnswerStatus::given_back);
  ASSERT_EQ(ask(acquire(2)).region, held.region);
  for (const bool known : {true, false}) {
    if (known)
      confirm_data_loss(fleet, regions, kNow, 1, true);
    else
      forget_everything(true);
    const LeaseAnswer answer = ask(early);
    EXPECT_EQ(answer.status, AnswerStatus::term_over);
    EXPECT_EQ(regions[static_cast<size_t>(held.region)].incarnation, 0);
    // The server that gave the region back has cleared the region number in its lease state. A late
    // answer to the server's renewal must not set the cleared region number again.
    LeaseMemory memory{};
    memory.begin(1, LeaseAnswer{}, [] {});
    memory.take(held);
    memory.forget([] {});
    EXPECT_EQ(read_answer(memory.view(), true, answer, kNow, kNow, 10'000), LeaseEvent::stale);
    EXPECT_EQ(read_answer(memory.view(), false, answer, kNow, kNow, 10'000), LeaseEvent::ask_again);
    memory.record(answer);
    EXPECT_EQ(memory.view().region, kNoRegion);
    EXPECT_EQ(memory.view().term, fleet.term);
  }
}

// Like every lease, a lease that is renewed after a recovery of the lease server lasts at most
// `longest_ms`. The next server that leases the region mints only ids with times after the latest
// possible end of all earlier leases.
TEST_F(Recovery, ALateRenewalShortensNothing) {
  LeaseRequest request = renew(held, 0, kNow + 5000);
  request.length_ms = kHour;
  const LeaseAnswer extended = ask(request, kNow + 5000);
  ASSERT_GT(extended.until_ms, held.until_ms);
  forget_everything(true);
  const LeaseAnswer again = keep_lease(renew(held));
  ASSERT_EQ(again.status, AnswerStatus::granted);
  EXPECT_LE(again.until_ms, kNow + fleet.longest_ms);
  EXPECT_GE(regions[static_cast<size_t>(held.region)].until_ms, extended.until_ms);
  LeaseMemory memory{};
  memory.begin(1, LeaseAnswer{}, [] {});
  memory.take(extended);
  memory.extend(again);
  EXPECT_EQ(memory.view().until_ms, extended.until_ms);
  EXPECT_EQ(memory.view().term, again.term);
  EXPECT_EQ(ask(give_back(again, extended.until_ms)).status, AnswerStatus::given_back);
  EXPECT_GE(regions[static_cast<size_t>(held.region)].until_ms, extended.until_ms);
}

// A restored lease server no longer contains the newest leases, and uses their numbers again for
// new leases. If a server gives back a lost lease, the lease server must refuse the request. It
// must not end a new lease with the same number.
TEST_F(Recovery, AGrantThatWasLostEndsNoOtherOfItsNumber) {
  ASSERT_EQ(held.grant, 1);
  forget_everything(true);
  for (LeasedRegion& region : regions) region.until_ms = 0;
  fleet.newest = held.grant - 1;
  const LeaseAnswer again = ask(acquire(1));
  ASSERT_EQ(again.grant, held.grant);
  LeaseRequest late = give_back(held, kNow);
  late.term = fleet.term;  // learned from a refusal
  late.newest = 0;
  EXPECT_EQ(ask(late).status, AnswerStatus::lost);
  EXPECT_EQ(regions[static_cast<size_t>(again.region)].incarnation, 1);
  EXPECT_EQ(ask(give_back(again, kNow)).status, AnswerStatus::given_back);
}

TEST_F(Recovery, NotWhereSomethingMayHaveBeenGrantedSince) {
  forget_everything(false);
  LeaseRequest request = renew(held);
  EXPECT_EQ(keep_lease(request).status, AnswerStatus::lost);
  request.term = fleet.term;
  request.newest = fleet.newest;
  EXPECT_EQ(ask(request).status, AnswerStatus::lost);
}

TEST_F(Recovery, NotIfAnOperatorHasRevokedIt) {
  revoke(regions[static_cast<size_t>(held.region)]);
  confirm_data_loss(fleet, regions, kNow, 1, true);
  EXPECT_EQ(keep_lease(renew(held)).status, AnswerStatus::lost);
}

TEST_F(Recovery, NotByAnotherServer) {
  forget_everything(true);
  ASSERT_EQ(keep_lease(renew(held)).status, AnswerStatus::granted);
  revoke(regions[static_cast<size_t>(held.region)]);
  LeaseRequest request = renew(held, 1);
  request.incarnation = 2;
  EXPECT_EQ(keep_lease(request).status, AnswerStatus::lost);
}

TEST_F(Recovery, NotWhoseLeaseMayHaveEnded) {
  forget_everything(true);
  LeaseRequest request = renew(held);
  request.until_ms = kNow + 20'000;
  EXPECT_EQ(keep_lease(request).status, AnswerStatus::lost);
  request.until_ms = kNow + 20'001;
  EXPECT_EQ(keep_lease(request).status, AnswerStatus::granted);
}

TEST_F(Recovery, NotWhereTheRegionHasBeenGrantedAnew) {
  forget_everything(true);
  const int64_t later = kNow + 2 * kHour;
  for (int64_t incarnation = 5; incarnation < 9; ++incarnation)
    EXPECT_EQ(ask(acquire(incarnation, 0, later), later).status, AnswerStatus::granted);
  for (LeasedRegion& region : regions) revoke(region);
  LeaseRequest request = renew(held, 0, later);
  EXPECT_EQ(keep_lease(request, later).status, AnswerStatus::lost);
  request.term = fleet.term;
  EXPECT_EQ(ask(request, later).status, AnswerStatus::lost);
}

// Two lease servers run after a failover, but an operator has confirmed the recovery of only one.
// After a server has received an answer of the confirmed lease server, it ignores the unconfirmed
// lease server.
TEST_F(Recovery, ANewerTermIsHeardByNoOlderDatabase) {
  for (const bool lost : {false, true}) {
    FleetState other = fleet;
    std::vector<LeasedRegion> others = regions;
    if (lost)
      confirm_data_loss(other, others, kNow, 1, true);
    else
      confirm_no_data_loss(other, kNow, 1);
    LeaseRequest again = renew(held);
    LeaseAnswer there = decide(other, others, std::array<int32_t, 1>{0}, again, kNow);
    if (lost) {
      again.term = there.term;
      again.newest = there.number;
      there = decide(other, others, std::array<int32_t, 1>{0}, again, kNow);
    }
    ASSERT_EQ(there.status, AnswerStatus::granted);
    LeaseMemory memory{};
    memory.begin(1, LeaseAnswer{}, [] {});
    memory.take(held);
    const LeaseAnswer late = ask(renew(held));
    memory.extend(there);
    EXPECT_EQ(read_answer(memory.view(), false, late, kNow, kNow, 10'000), LeaseEvent::stale);
    EXPECT_EQ(ask(renew(there)).status, AnswerStatus::halted);
    EXPECT_EQ(ask(acquire(9)).status, AnswerStatus::halted) << "and then nobody is told anything";
    fleet.halted = false;
  }
}

TEST_F(Recovery, NothingLostKeepsLeasesAndNoticesWhatWasLost) {
  confirm_no_data_loss(fleet, kNow, 1);
  LeaseRequest request = renew(held);
  EXPECT_EQ(ask(request).status, AnswerStatus::granted);
  EXPECT_EQ(ask(request).grant, held.grant);
  request.newest = held.number + 1;
  EXPECT_EQ(ask(request).status, AnswerStatus::halted);
}

}  // namespace
}  // namespace snowflake
