#include "lease_support.hpp"

namespace snowflake {
namespace {

struct Answer : Lease {
  LeaseAnswer granted = ask(acquire(1));
  LeaseMemory memory{};
  Answer() {
    memory.begin(1, LeaseAnswer{}, [] {});
  }
  LeaseEvent read(const LeaseAnswer& answer, bool giving_back = false) const {
    return read_answer(memory.view(), giving_back, answer, kNow, kNow + 10, 10'000);
  }
};

TEST_F(Answer, IsReadOnce) {
  EXPECT_EQ(memory.view().region, kNoRegion);
  EXPECT_EQ(read(granted), LeaseEvent::taken);
  memory.take(granted);
  EXPECT_EQ(memory.view().region, granted.region);
  EXPECT_EQ(memory.view().highest_ms, granted.floor_ms);
  EXPECT_EQ(read(granted), LeaseEvent::stale);
  const LeaseAnswer renewed = ask(renew(granted));
  EXPECT_EQ(read(renewed), LeaseEvent::extended);
}

TEST_F(Answer, OfAnEarlierTermIsOld) {
  memory.take(granted);
  memory.forget([] {});
  LeaseAnswer newer{};
  newer.term = granted.term + 1;
  newer.number = 1;
  memory.record(newer);
  EXPECT_EQ(read(granted), LeaseEvent::stale);
  granted.term += 2;
  EXPECT_EQ(read(granted), LeaseEvent::taken);
}

TEST_F(Answer, ForAnotherIncarnationIsIgnored) {
  granted.incarnation = 2;
  EXPECT_EQ(read(granted), LeaseEvent::stale);
}

TEST_F(Answer, ToARenewalTakesNoRegion) {
  memory.take(granted);
  const LeaseAnswer renewed = ask(renew(granted));
  memory.forget([] {});
  EXPECT_EQ(read(renewed), LeaseEvent::stale);
  EXPECT_EQ(read(ask(acquire(1)), true), LeaseEvent::stale) << "while it gives back";
  EXPECT_EQ(read(ask(acquire(1))), LeaseEvent::taken);
}

TEST_F(Answer, OfAnotherHoldingEndsTheIncarnation) {
  memory.take(granted);
  LeaseAnswer other = ask(renew(granted));
  other.floor_ms += 5;
  EXPECT_EQ(read(other), LeaseEvent::lost) << "somebody else had the region in between";
  other = ask(renew(granted));
  other.region = 3;
  EXPECT_EQ(read(other), LeaseEvent::lost);
}

TEST_F(Answer, WithAClockThatIsApartIsNotTaken) {
  granted.clock_ms = kNow - 10'001;
  EXPECT_EQ(read(granted), LeaseEvent::apart);
  granted.clock_ms = kNow + 10 + 10'001;
  EXPECT_EQ(read(granted), LeaseEvent::apart);
  granted.clock_ms = kNow + 10'010;
  EXPECT_EQ(read(granted), LeaseEvent::taken);
}

TEST_F(Answer, ThatRefusesChangesNothing) {
  memory.take(granted);
  LeaseAnswer refused = ask(renew(granted, 0, kNow + 99'999));
  EXPECT_EQ(read(refused), LeaseEvent::refused);
  refused.status = AnswerStatus::halted;
  EXPECT_EQ(read(refused), LeaseEvent::refused);
}

TEST_F(Answer, ANewIncarnationHasNothingOfTheOldOne) {
  memory.take(granted);
  memory.raise_highest(kNow + 77);
  EXPECT_EQ(memory.view().highest_ms, kNow + 77);
  memory.begin(9, granted, [] {});
  const LeaseView view = memory.view();
  EXPECT_EQ(view.region, kNoRegion);
  EXPECT_EQ(view.incarnation, 9);
  EXPECT_EQ(view.until_ms, 0);
  EXPECT_EQ(view.highest_ms, 0);
  EXPECT_EQ(view.newest, granted.number);
}

TEST_F(Answer, TermAndNumberAreOfOneAnswerWhereverTheWorkerIsKilled) {
  LeaseAnswer older{};
  older.term = 7;
  older.number = 70;
  LeaseAnswer newer = older;
  newer.term = 8;
  newer.number = 80;
  for (int stores = 0; stores < 6; ++stores) {
    ModelMemory killed;
    killed.record(older);
    Kill::stores_left = stores;
    killed.record(newer);
    Kill::stores_left = -1;
    const LeaseView view = killed.view();
    EXPECT_TRUE(view.term == 7 || view.term == 8);
    EXPECT_EQ(view.newest, view.term * 10) << stores;
  }
}

// The function begin() must store the number of the new server run (incarnation) before it clears
// `highest_ms`, the time up to which ids were issued. The test kills the lease worker once after
// each store to memory.
TEST_F(Answer, AnIncarnationForgetsNothingBeforeItIsOver) {
  for (int stores = 0;; ++stores) {
    ModelMemory killed;
    killed.begin(granted.incarnation, LeaseAnswer{}, [] {});
    killed.take(granted);
    killed.raise_highest(kNow + 77);
    Kill::stores_left = stores;
    killed.begin(granted.incarnation + 1, granted, [] {});
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
