// Runs sessions with transactions of different lengths, a clock that goes back and forth, and
// readers that call settle(). A mutex represents ProcArrayLock, the lock that PostgreSQL takes for
// commits and snapshots. In this test, a snapshot consists only of the number of transactions that
// have committed.
#include <gtest/gtest.h>

#include <sched.h>

#include <memory>
#include <mutex>
#include <span>
#include <thread>

#include "core/settled.hpp"
#include "support.hpp"

namespace snowflake {
namespace {

constexpr Layout kLayout = parse_layout("41/2/4", 0, kDefaultEpoch).layout;  // 16 ids a tick
constexpr size_t kCounters = 4;
constexpr size_t kWriters = 6;
constexpr size_t kReaders = 2;
constexpr size_t kTransactions = 8000;  // at least, per writer
constexpr size_t kMostTransactions = 100 * kTransactions;
constexpr size_t kReadings = 2000;  // at least, per reader
constexpr size_t kMoves = 500;      // least number of advances

struct Crowd {
  Shard counters[kCounters]{};
  OpenMints slots[kWriters]{};
  Settled settled{};
  alignas(64) std::atomic<uint64_t> now{1000};
  std::atomic<size_t> writing{kWriters};
  std::atomic<size_t> moves{0};
  std::mutex lock;
  std::vector<uint64_t> first_ticks;  // in the order of commits

  void commit(uint64_t first_tick) {
    const std::lock_guard guard(lock);
    first_ticks.push_back(first_tick);
  }
  size_t snapshot() {
    const std::lock_guard guard(lock);
    return first_ticks.size();
  }

  void write(size_t session, Random random) {
    MintRecord record;
    for (size_t i = 0; i < kTransactions || (moves.load() < kMoves && i < kMostTransactions); ++i) {
      uint64_t first_tick = UINT64_MAX;
      for (uint64_t left = random.between(1, 4); left > 0; --left) {
        const Bounds bounds{now.load(std::memory_order_relaxed), 1'000'000, UINT64_MAX, 0};
        const Claim claim = claim_recorded(
            record, [&]() -> OpenMints& { return slots[session]; },
            counters[random.below(kCounters)], kLayout, bounds, random.between(1, 20));
        first_tick = std::min(first_tick, kLayout.tick_of_position(claim.first));
        if (random.percent(20)) sched_yield();
      }
      if (random.percent(90)) commit(first_tick);
      record.close(slots[session]);
    }
    writing.fetch_sub(1);
  }

  struct Reading {
    uint64_t settled;
    size_t seen;
  };
  void read(std::vector<Reading>& readings) {
    uint64_t before = 0;
    while (readings.size() < kReadings || writing.load() > 0) {
      const uint64_t tick = settled.settle(
          kLayout, std::span<Shard>(counters), now.load(std::memory_order_relaxed),
          [&] {
            uint64_t least = OpenMints::kNone;
            for (const OpenMints& slot : slots) least = std::min(least, slot.since());
            return least;
          },
          [] { return OpenMints::kNone; });
      readings.push_back({tick, snapshot()});
      moves += tick > before;
      before = tick;
      sched_yield();
    }
  }
};

TEST(SettledThreads, NothingAppearsBelowTheCursor) {
  SCOPED_TRACE(testing::Message() << "SNOWFLAKE_TEST_SEED=" << test_seed());
  const auto crowd = std::make_unique<Crowd>();
  std::vector<Crowd::Reading> readings[kReaders];
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kWriters; ++i)
    threads.emplace_back([&, i] { crowd->write(i, Random(900 + i)); });
  for (auto& of_reader : readings) threads.emplace_back([&] { crowd->read(of_reader); });
  Random random(899);
  while (crowd->writing.load() > 0) {
    const uint64_t now = crowd->now.load(std::memory_order_relaxed);
    crowd->now.store(random.percent(30) ? now - std::min<uint64_t>(now, random.below(20))
                                        : now + random.below(30),
                     std::memory_order_relaxed);
    sched_yield();
  }
  for (auto& thread : threads) thread.join();

  // After the loop, `least[i]` is the earliest tick (time unit) of all ids in commit number i and
  // later commits.
  std::vector<uint64_t> least(crowd->first_ticks);
  for (size_t i = least.size(); i-- > 1;) least[i - 1] = std::min(least[i - 1], least[i]);
  for (const auto& of_reader : readings) {
    uint64_t before = 0;
    for (const auto& [settled, seen] : of_reader) {
      ASSERT_GE(settled, before) << "the cursor went back";
      if (seen < least.size()) {
        ASSERT_GE(least[seen], settled) << "appeared after snapshot " << seen;
      }
      before = settled;
    }
  }
  // Checks that the result of settle() increased, because a constant result would pass all other
  // checks.
  EXPECT_GE(crowd->moves.load(), kMoves);
  std::printf("%zu transactions, %zu readings, %zu moved the cursor\n", least.size(),
              readings[0].size() + readings[1].size(), crowd->moves.load());
}

}  // namespace
}  // namespace snowflake
