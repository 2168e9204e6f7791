#include "core/limits.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <thread>

#include "lease_support.hpp"

namespace snowflake {
namespace {

constexpr Layout kLayout = parse_layout("41/2/4", 0, kDefaultEpoch).layout;
constexpr LeaseMemory* kNotLeased = nullptr;
constexpr RegionHold kOwn{3, 0};
constexpr int64_t kFloor = kNow;
constexpr int64_t kUntil = kNow + 10'000;

uint64_t below(int64_t ms) {
  return position_below(kLayout, ms);
}

LeaseAnswer granted() {
  LeaseAnswer answer{};
  answer.region = 2;
  answer.floor_ms = kFloor;
  answer.until_ms = kUntil;
  return answer;
}

struct Bound : testing::Test {
  ModelLimits limits{};
  uint32_t generation = limits.bind(1, 0, kOwn).generation;

  bool publish(int64_t mark_ms) {
    limits.record_written(mark_ms);
    return limits.publish(kLayout, generation, mark_ms, kNotLeased);
  }
};
using LimitsTest = Bound;

TEST_F(LimitsTest, OnlyRiseInAGeneration) {
  EXPECT_EQ(limits.take(generation), 0u);
  EXPECT_TRUE(publish(kNow));
  EXPECT_TRUE(publish(kNow - 5));
  EXPECT_EQ(limits.take(generation), below(kNow));
  EXPECT_TRUE(publish(kNow + 1));
  EXPECT_EQ(limits.take(generation), below(kNow + 1));
}

TEST_F(LimitsTest, BeginAgainAfterWithdrawal) {
  publish(kNow);
  limits.withdraw();
  EXPECT_EQ(limits.read(), 0u);
  EXPECT_EQ(limits.take(generation), std::nullopt);
  EXPECT_FALSE(publish(kNow + 9));
  EXPECT_EQ(limits.read(), 0u);
  generation = limits.bind(1, kNow + 9, kOwn).generation;
  EXPECT_TRUE(publish(kNow - 5));
  EXPECT_EQ(limits.take(generation), below(kNow - 5));
}

TEST_F(LimitsTest, BelongToOneMark) {
  publish(kNow);
  EXPECT_EQ(limits.bind(1, kNow, kOwn).generation, generation);
  EXPECT_EQ(limits.take(generation), below(kNow));
  EXPECT_NE(limits.bind(2, kNow, kOwn).generation, generation);
  EXPECT_EQ(limits.take(generation), std::nullopt);
  EXPECT_EQ(limits.read(), 0u);
}

TEST_F(LimitsTest, EndIfTheStoredValueWasLowered) {
  publish(kNow);
  const uint32_t low = limits.bind(1, kNow - 1, kOwn).generation;
  EXPECT_NE(low, generation);
  EXPECT_EQ(limits.read(), 0u);
  // While no limit is published, a call of bind() with a lower value of the same high-water mark
  // must not change the generation number.
  EXPECT_EQ(limits.bind(1, kNow - 1, kOwn).generation, low);
}

TEST_F(LimitsTest, AdoptAMarkOnce) {
  uint64_t floor = 0;
  const auto raise = [&](uint64_t position) { floor = position; };
  limits.adopt(kLayout, kNow, raise);
  EXPECT_EQ(floor, position_from(kLayout, kNow));
  EXPECT_EQ(limits.floor_ms(), kNow);
  EXPECT_EQ(limits.highest_ms(), kNow);
  limits.record_written(kNow + 5);
  floor = 0;
  limits.adopt(kLayout, kNow + 5, raise);
  EXPECT_EQ(floor, 0u);
  EXPECT_EQ(limits.floor_ms(), kNow);
}

TEST_F(LimitsTest, AreKnownAfterTheCountersAreRaised) {
  limits.adopt(kLayout, kNow, [&](uint64_t) { EXPECT_FALSE(limits.has_recorded(kNow)); });
  EXPECT_TRUE(limits.has_recorded(kNow));
}

struct LeasedLimits : testing::Test {
  ModelMemory memory{};
  ModelLimits first{}, second{};

  LeasedLimits() {
    memory.begin(1, LeaseAnswer{}, [] {});
    memory.take(granted());
  }
  uint32_t bind(ModelLimits& limits) { return limits.bind(1, 0, memory.region()).generation; }
  bool publish(ModelLimits& limits, uint32_t generation, int64_t mark_ms) {
    return limits.publish(kLayout, generation, mark_ms, &memory);
  }
  void end_limits() {
    first.end_region();
    second.end_region();
  }
};

TEST_F(LeasedLimits, EndWithTheLease) {
  const uint32_t generation = bind(first);
  EXPECT_TRUE(publish(first, generation, kUntil - 1));
  EXPECT_EQ(first.take(generation), below(kUntil - 1));
  EXPECT_TRUE(publish(first, generation, kUntil + 1000));
  EXPECT_EQ(first.take(generation), below(kUntil));
  EXPECT_EQ(memory.view().highest_ms, kUntil);
}

// Simulates that a process is killed in publish(), after each possible number of stores to memory.
// After the simulated kill, `highest_ms` in shared memory must be later than the time of every id
// that sessions may have minted.
TEST_F(LeasedLimits, AreRecordedBeforeTheyAreRead) {
  for (int stores = 0; stores < 4; ++stores) {
    ModelMemory killed = memory;
    ModelLimits limits{};
    const uint32_t generation = limits.bind(1, 0, killed.region()).generation;
    Kill::stores_left = stores;
    limits.publish(kLayout, generation, kNow + 5000, &killed);
    Kill::stores_left = -1;
    EXPECT_EQ(killed.view().highest_ms, stores == 0 ? kFloor : kNow + 5000) << stores;
    EXPECT_LE(limits.read(), below(killed.view().highest_ms)) << stores;
    EXPECT_EQ(limits.read() != 0, stores > 1) << stores;
  }
}

TEST_F(LeasedLimits, AreTheFloorOfALaterDatabase) {
  publish(first, bind(first), kNow + 5000);
  const MarkBinding late = second.bind(1, 0, memory.region());
  uint64_t floor = 0;
  ModelLimits::reopen(kLayout, late, [&](uint64_t position) { floor = position; });
  EXPECT_EQ(floor, position_from(kLayout, kNow + 5000));
  EXPECT_EQ(late.region.region, 2);
}

TEST_F(LeasedLimits, BeginOnceForEachHolding) {
  publish(first, bind(first), kNow + 5000);
  EXPECT_EQ(second.bind(1, 0, memory.region()).region.begin_ms, kNow + 5000);
  publish(second, second.generation(), kNow + 7000);
  EXPECT_EQ(second.bind(1, 0, memory.region()).region.begin_ms, kNow + 5000);
  EXPECT_EQ(first.bind(1, 0, memory.region()).region.begin_ms, kFloor);
  memory.forget([&] { end_limits(); });
  EXPECT_EQ(first.bind(1, 0, memory.region()).region.region, kNoRegion);
  EXPECT_EQ(first.begin_ms(), 0);
  LeaseAnswer again = granted();
  again.floor_ms = kNow + 7000;
  memory.take(again);
  EXPECT_EQ(first.bind(1, 0, memory.region()).region.begin_ms, kNow + 7000);
}

TEST_F(LeasedLimits, EndBeforeTheRegionDoes) {
  for (const bool lost : {false, true}) {
    memory.take(granted());
    const uint32_t generation = bind(first);
    publish(first, generation, kNow + 5000);
    bool ended = false;
    const auto end = [&] {
      EXPECT_EQ(memory.view().region, 2);
      end_limits();
      ended = true;
    };
    if (lost)
      memory.begin(2, LeaseAnswer{}, end);
    else
      EXPECT_EQ(memory.forget(end).highest_ms, kNow + 5000);
    EXPECT_TRUE(ended);
    EXPECT_EQ(memory.view().region, kNoRegion);
    EXPECT_EQ(first.take(generation), std::nullopt);
    EXPECT_EQ(first.read(), 0u);
    EXPECT_FALSE(publish(first, generation, kNow + 6000));
    EXPECT_EQ(first.read(), 0u);
  }
}

TEST_F(LeasedLimits, AreAllGivenBack) {
  const uint32_t generation = bind(first);
  const LeaseView last = memory.forget([&] {
    publish(first, generation, kNow + 8000);
    end_limits();
  });
  EXPECT_EQ(last.highest_ms, kNow + 8000);
}

TEST_F(LeasedLimits, BoundWhatIsObserved) {
  EXPECT_TRUE(may_be_observed(kUntil, memory.view().until_ms));
  EXPECT_FALSE(may_be_observed(kUntil + 1, memory.view().until_ms));
  EXPECT_TRUE(may_be_observed(INT64_MAX, INT64_MAX));
}

// While a session reads the limit up to which sessions may mint ids, another session publishes a
// limit with a new generation number. The function take() must return no limit if the limit's
// generation number has changed.
TEST_F(LimitsTest, BelongToTheRequestedGeneration) {
  for (int loads = 0; loads < 2; ++loads) {
    ModelLimits read{};
    const uint32_t mine = read.bind(1, 0, kOwn).generation;
    read.publish(kLayout, mine, kNow, kNotLeased);
    Meanwhile::loads_left = loads;
    Meanwhile::run = [&] {
      const uint32_t next = read.bind(2, kNow, kOwn).generation;
      read.publish(kLayout, next, kNow + 1000, kNotLeased);
    };
    EXPECT_EQ(read.take(mine), std::nullopt) << loads;
    EXPECT_FALSE(Meanwhile::run) << loads;
  }
}

// Interrupts withdraw() after each of its stores to memory. The first store of withdraw() changes
// the generation number of the limits, so take() and publish() must then refuse the old number.
TEST_F(LimitsTest, EndWithTheFirstStore) {
  for (int stores = 0; stores < 5; ++stores) {
    ModelLimits killed{};
    const uint32_t mine = killed.bind(1, 0, kOwn).generation;
    killed.publish(kLayout, mine, kNow, kNotLeased);
    Kill::stores_left = stores;
    killed.withdraw();
    Kill::stores_left = -1;
    if (stores == 0) {
      EXPECT_EQ(killed.take(mine), below(kNow));
      continue;
    }
    EXPECT_EQ(killed.take(mine), std::nullopt) << stores;
    EXPECT_FALSE(killed.publish(kLayout, mine, kNow + 1, kNotLeased)) << stores;
  }
}

// The variable `raised` simulates the shard counters. `raised` is not atomic, so that
// ThreadSanitizer can detect a data race. Without release in publish() and acquire in read(),
// ThreadSanitizer reports a data race on `raised` on any machine.
TEST(LimitsOrder, AreSeenWithEarlierWrites) {
  for (int64_t round = 1; round <= 200; ++round) {
    const auto limits = std::make_unique<Limits>();
    const uint32_t generation = limits->bind(1, 0, kOwn).generation;
    int64_t raised = 0;
    std::thread publisher([&] {
      raised = round;
      limits->publish(kLayout, generation, kNow + round, kNotLeased);
    });
    while (limits->read() < below(kNow + round)) std::this_thread::yield();
    EXPECT_EQ(raised, round);
    publisher.join();
  }
}

// For each generation number N, the test publishes a different limit for new ids (kNow + N). A
// session must never receive the limit of another generation number.
TEST(LimitsOrder, BelongToTheirGenerationWhileItEnds) {
  const auto limits = std::make_unique<Limits>();
  std::mutex lock;
  std::atomic<bool> stop{false};
  const auto bind_and_publish = [&] {
    const std::lock_guard<std::mutex> locked(lock);
    const uint32_t generation = limits->bind(1, INT64_MAX, kOwn).generation;
    limits->publish(kLayout, generation, kNow + generation, kNotLeased);
    return generation;
  };
  std::thread withdrawer([&] {
    while (!stop) {
      bind_and_publish();
      const std::lock_guard<std::mutex> locked(lock);
      limits->withdraw();
    }
  });
  for (int taken = 0, tries = 0; tries < 20'000 || taken < 100; ++tries) {
    const uint32_t generation = bind_and_publish();
    const std::optional<uint64_t> limit = limits->take(generation);
    if (!limit) continue;
    ++taken;
    ASSERT_TRUE(*limit == 0 || *limit == below(kNow + generation)) << generation;
  }
  stop = true;
  withdrawer.join();
}

}  // namespace
}  // namespace snowflake
