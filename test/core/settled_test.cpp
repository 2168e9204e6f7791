#include "core/settled.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <thread>

#include "support.hpp"

namespace snowflake {
namespace {

constexpr Layout kLayout = parse_layout("41/2/4", 0, kDefaultEpoch).layout;  // 16 ids a tick
constexpr uint64_t kNone = OpenMints::kNone;

class SettledTest : public testing::Test {
 protected:
  SettledTest() : counters_(std::make_unique<Shard[]>(4)) {}

  uint64_t settle(uint64_t tick, uint64_t open = kNone, uint64_t prepared = kNone) {
    return settled_.settle(
        kLayout, counters(), tick, [=] { return open; }, [=] { return prepared; });
  }
  std::span<Shard> counters() { return {counters_.get(), 4}; }
  Claim claim(size_t counter, uint64_t now) {
    return counters_[counter].claim(kLayout, {now, 100, UINT64_MAX, 0}, 1);
  }

  std::unique_ptr<Shard[]> counters_;
  Settled settled_{};
};

TEST_F(SettledTest, EverythingBeforeTheClockIfNothingIsOpen) {
  EXPECT_EQ(settle(50), 50u);
  EXPECT_EQ(settle(51), 51u);
}

TEST_F(SettledTest, NoCounterClaimsBelowItAnyMore) {
  settle(50);
  for (size_t counter = 0; counter < 4; ++counter)
    EXPECT_EQ(claim(counter, 10).first, kLayout.first_position(50));
}

TEST_F(SettledTest, TheCountersAreRaisedOnceATick) {
  settle(50);
  const uint64_t first = counters_[2].last();
  counters_[2].raise_floor(0);
  settle(50, 20);
  settle(49);
  EXPECT_EQ(counters_[2].last(), first);
  EXPECT_EQ(settled_.raised(), 50u);
}

TEST_F(SettledTest, AnOpenTransactionHoldsItBack) {
  EXPECT_EQ(settle(50, 30), 30u);
  EXPECT_EQ(settle(60, 30), 30u);
  EXPECT_EQ(settle(60), 60u);
}

TEST_F(SettledTest, APreparedTransactionHoldsItBack) {
  EXPECT_EQ(settle(50, kNone, 30), 30u);
  EXPECT_EQ(settle(50, 20, 30), 30u) << "what was settled stays so";
  EXPECT_EQ(settle(60, 55, 40), 40u);
}

TEST_F(SettledTest, AClockThatGoesBackDoesNotLowerIt) {
  EXPECT_EQ(settle(50), 50u);
  EXPECT_EQ(settle(20), 50u);
  EXPECT_EQ(settle(20, 10), 50u);
  EXPECT_EQ(claim(0, 20).first, kLayout.first_position(50));
}

// settle() first raises the shard counters, then reads the open transactions, and then the prepared
// transactions. The function settle() must read open transactions first, because an open
// transaction may become a prepared transaction during the call.
TEST_F(SettledTest, FloorThenSessionsThenPrepared) {
  int asked = 0;
  settled_.settle(
      kLayout, counters(), 50,
      [&] {
        EXPECT_EQ(counters_[3].last() + 1, kLayout.first_position(50));
        EXPECT_EQ(asked++, 0);
        return kNone;
      },
      [&] {
        EXPECT_EQ(asked++, 1);
        return kNone;
      });
  EXPECT_EQ(asked, 2);
}

TEST(MintRecord, IsStoredOnceATransaction) {
  const auto slot = std::make_unique<OpenMints>();
  MintRecord record;
  Shard counter{};
  int stored = 0;
  const auto find = [&]() -> OpenMints& {
    ++stored;
    return *slot;
  };
  const auto mint = [&](uint64_t now) {
    return claim_recorded(record, find, counter, kLayout, {now, 100, UINT64_MAX, 0}, 1);
  };
  EXPECT_EQ(slot->since(), kNone);
  EXPECT_FALSE(record.is_open());
  mint(20);
  mint(20);
  mint(25);
  EXPECT_EQ(stored, 1);
  EXPECT_EQ(slot->since(), 20u);
  mint(15);  // the clock was set back
  EXPECT_EQ(stored, 2);
  EXPECT_EQ(slot->since(), 15u);
  mint(18);
  EXPECT_EQ(stored, 2);
  EXPECT_TRUE(record.is_open());
  record.close(*slot);
  EXPECT_EQ(slot->since(), kNone);
  mint(30);
  EXPECT_EQ(slot->since(), 30u);
}

TEST(MintRecord, AFailedClaimIsRecordedToo) {
  const auto slot = std::make_unique<OpenMints>();
  MintRecord record;
  Shard counter{};
  const Bounds bounds{20, 0, 10, 0};
  const Claim claim = claim_recorded(
      record, [&]() -> OpenMints& { return *slot; }, counter, kLayout, bounds, 1);
  EXPECT_EQ(claim.outcome, Outcome::at_limit);
  EXPECT_EQ(slot->since(), 20u);
}

// The variable `before` simulates data that a session stores before it claims an id. `before` is
// not atomic, so that ThreadSanitizer can detect a data race. ThreadSanitizer reports a data race
// on `before` if claim() does not store with release order. ThreadSanitizer also reports a data
// race on `before` if raise_floor() does not load with acquire order. Accesses to `claimed` are
// relaxed, so they do not order the memory accesses of the two threads.
template <class Raise>
void claim_then_raise(Raise raise) {
  for (uint64_t round = 1; round <= 200; ++round) {
    const auto counter = std::make_unique<Shard>();
    std::atomic<bool> claimed{false};
    uint64_t before = 0;
    std::thread claimer([&] {
      before = round;
      counter->claim(kLayout, {10, 100, UINT64_MAX, 0}, 1);
      claimed.store(true, std::memory_order_relaxed);
    });
    while (!claimed.load(std::memory_order_relaxed)) std::this_thread::yield();
    raise(*counter);
    EXPECT_EQ(before, round);
    claimer.join();
  }
}

TEST(SettledOrder, AFloorSeesWritesBeforeTheClaimsBelowIt) {
  claim_then_raise([](Shard& counter) { counter.raise_floor(kLayout.first_position(20)); });
}

TEST(SettledOrder, AlsoIfTheCounterIsAlreadyRaised) {
  claim_then_raise([](Shard& counter) { counter.raise_floor(1); });
}

TEST(SettledOrder, AlsoOverTheFloorOfAnother) {
  claim_then_raise([](Shard& counter) {
    std::thread other([&] { counter.raise_floor(kLayout.first_position(15)); });
    counter.raise_floor(kLayout.first_position(20));
    other.join();
  });
}

TEST(SettledOrder, AClosedSlotIsSeenWithTheCommit) {
  for (uint64_t round = 1; round <= 200; ++round) {
    const auto slot = std::make_unique<OpenMints>();
    slot->open(10);
    uint64_t committed = 0;
    std::thread session([&] {
      committed = round;
      slot->close();
    });
    while (slot->since() != kNone) std::this_thread::yield();
    EXPECT_EQ(committed, round);
    session.join();
  }
}

// A session that reads the new value of raised() must also see all stores that were made before
// settle() raised the value.
TEST(SettledOrder, TheNextReaderSeesTheSame) {
  for (uint64_t round = 1; round <= 200; ++round) {
    const auto counters = std::make_unique<Shard[]>(1);
    Settled settled{};
    const std::span<Shard> all{counters.get(), 1};
    const auto nobody = [] { return kNone; };
    uint64_t before = 0;
    std::thread first([&] {
      before = round;
      settled.settle(kLayout, all, 30, nobody, nobody);
    });
    while (settled.raised() < 30) std::this_thread::yield();
    EXPECT_EQ(before, round);
    first.join();
  }
}

}  // namespace
}  // namespace snowflake
