// Runs many threads or processes (claimers) that claim ids, and one (the conductor) that moves the
// clock and the limit below which claimers mint ids. Claimers can be threads or processes, because
// all their data can be in shared memory.
//
// Before the test raises the limit for new ids, it raises all shard counters to a position at or
// above the old limit. No id may have a position between the old limit for new ids and the new
// values of the shard counters.
#pragma once

#include <atomic>
#include <chrono>
#include <span>
#include <thread>

#include "core/limits.hpp"
#include "core/shard.hpp"
#include "support.hpp"

namespace snowflake {

inline constexpr size_t kCounters = 2;
inline constexpr size_t kJournalSize = 1 << 17;

struct Plan {
  Layout layout = parse_layout("41/2/4", 0, kDefaultEpoch).layout;
  uint64_t lead = 50;
  uint64_t spread = 0;
  uint64_t quota = kJournalSize;  // ids per claimer
};

struct Counter {
  Shard shard;
  alignas(64) std::atomic<uint64_t> floor;
};

struct Stage {
  Counter counters[kCounters];
  alignas(64) std::atomic<uint64_t> now;
  Limits limits;
  uint32_t generation;  // written before `go` is set
  std::atomic<bool> go;
  std::atomic<bool> stop;
  std::atomic<uint32_t> finished;
};

// Stores the ids of one claimer in the order of claims. The claimer stores `used`, the number of
// ids, after the ids, so the test can read the ids of a killed claimer.
struct Journal {
  std::atomic<uint64_t> used;
  std::atomic<uint64_t> below_floor;
  std::atomic<uint64_t> above_limit;
  std::atomic<uint64_t> too_far_ahead;
  int64_t ids[kJournalSize];
};

// Sleeps instead of yielding. On a busy machine a thread that yields runs again only after the time
// slices of all other threads.
inline void give_way() {
  std::this_thread::sleep_for(std::chrono::microseconds(1));
}

inline size_t counter_of(uint32_t shard) {
  return shard % kCounters;
}

inline void raise_floor(Counter& counter, uint64_t floor) {
  counter.shard.raise_floor(floor);
  uint64_t seen = counter.floor.load(std::memory_order_relaxed);
  while (seen < floor &&
         !counter.floor.compare_exchange_weak(seen, floor, std::memory_order_release)) {
  }
}

inline void claim_ids(Stage& stage, Journal& journal, const Plan& plan, Random random) {
  const Layout& layout = plan.layout;
  while (!stage.go.load(std::memory_order_acquire)) give_way();
  for (uint64_t used = 0; used < plan.quota && !stage.stop.load(std::memory_order_relaxed);) {
    // Six of eight requests for ids use the shards 0 and 2, which share the shard counter 0. The
    // test has only two shard counters.
    constexpr uint32_t shards[] = {0, 2, 0, 2, 0, 2, 1, 3};
    const uint32_t shard = shards[random.below(8)];
    Counter& counter = stage.counters[counter_of(shard)];
    if (random.percent(1)) raise_floor(counter, counter.shard.last() + random.below(60) - 20);

    const uint64_t wanted =
        std::min(random.percent(85) ? 1 : random.between(2, 40), plan.quota - used);
    const uint64_t floor = counter.floor.load(std::memory_order_acquire);
    const Bounds bounds{stage.now.load(std::memory_order_relaxed), plan.lead,
                        stage.limits.take(stage.generation).value_or(0), plan.spread};
    const Claim claim = counter.shard.claim(layout, bounds, wanted);
    if (claim.outcome != Outcome::claimed) {
      give_way();
      continue;
    }
    if (claim.first < floor) ++journal.below_floor;
    if (claim.last() >= bounds.limit) ++journal.above_limit;
    if (layout.tick_of_position(claim.last()) > bounds.now + plan.lead) ++journal.too_far_ahead;
    write_ids(layout, 0, shard, claim.first, claim.count, journal.ids + used);
    used += claim.count;
    journal.used.store(used, std::memory_order_release);
    counter.shard.statistics.add(claim.count, wanted > 1, claim.borrowed,
                                 layout.id(claim.last(), 0, shard));
  }
  stage.finished.fetch_add(1);
}

struct Gap {
  uint64_t begin;  // the old limit
  uint64_t end;    // the new floor
};

inline void publish(Stage& stage, const Layout& layout, int64_t mark_ms) {
  constexpr LeaseMemory* not_leased = nullptr;
  EXPECT_TRUE(stage.limits.publish(layout, stage.generation, mark_ms, not_leased));
}

// Runs until done() returns true, or until no claimer got an id for a minute. The simulated clock
// follows the shard counters, so the times of ids are never far from the clock.
template <class Done>
std::vector<Gap> conduct(Stage& stage, const Plan& plan, Random random, Done done) {
  const Layout& layout = plan.layout;
  std::vector<Gap> gaps;
  const auto step_ms = [&](uint64_t positions) {
    return layout.ms_of_tick(layout.tick_of_position(random.below(positions))) - layout.epoch_ms;
  };
  uint64_t claimed = 0;
  auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  const auto raise_counters = [&](uint64_t floor) {
    for (Counter& counter : stage.counters) raise_floor(counter, floor);
  };
  stage.now.store(1000);
  int64_t published_ms = layout.ms_of_tick(1000);
  stage.limits.adopt(layout, published_ms, raise_counters);
  stage.generation = stage.limits.bind(1, published_ms, {0, 0}).generation;
  publish(stage, layout, published_ms);
  stage.go.store(true, std::memory_order_release);
  while (!done()) {
    uint64_t by_now = 0;
    for (const Counter& counter : stage.counters) by_now += counter.shard.statistics.ids;
    if (by_now != claimed) {
      claimed = by_now;
      deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    }
    if (std::chrono::steady_clock::now() > deadline) {
      ADD_FAILURE() << "the claimers do not get on";
      break;
    }
    uint64_t last = 0;
    for (const Counter& counter : stage.counters) last = std::max(last, counter.shard.last());
    const uint64_t now =
        layout.tick_of_position(last) + random.below(3) - random.below(plan.lead + 3);
    stage.now.store(now, std::memory_order_relaxed);

    const uint64_t limit = position_below(layout, published_ms);
    const uint64_t reach = std::max(last + 1, layout.first_position(now));
    if (reach + random.below(100) >= limit) {
      const int64_t floor_ms = published_ms + step_ms(200);
      stage.limits.adopt(layout, floor_ms, raise_counters);
      const int64_t reach_ms = layout.ms_of_tick(layout.tick_of_position(reach));
      published_ms = std::max(floor_ms, reach_ms) + layout.tick_ms + step_ms(500);
      stage.limits.record_written(published_ms);
      publish(stage, layout, published_ms);
      gaps.push_back({limit, position_from(layout, floor_ms)});
    }
    give_way();
  }
  stage.stop.store(true);
  return gaps;
}

struct Claimed {
  uint64_t position;
  size_t counter;
  size_t claimer;
};

// Checks that the ids of all claimers are unique and ascending. Checks that no id has a position in
// `gaps`, the ranges that all shard counters had to skip.
inline void audit(const Stage& stage, const Plan& plan, std::span<const Journal> journals,
                  const std::vector<Gap>& gaps) {
  const Layout& layout = plan.layout;
  std::vector<Claimed> all;
  for (size_t claimer = 0; claimer < journals.size(); ++claimer) {
    const Journal& journal = journals[claimer];
    EXPECT_EQ(journal.below_floor, 0u) << "claimer " << claimer;
    EXPECT_EQ(journal.above_limit, 0u) << "claimer " << claimer;
    EXPECT_EQ(journal.too_far_ahead, 0u) << "claimer " << claimer;
    uint64_t before[kCounters] = {};
    for (uint64_t i = 0; i < journal.used; ++i) {
      const auto id = static_cast<uint64_t>(journal.ids[i]);
      const size_t counter = counter_of(layout.shard_of(id));
      const uint64_t position = layout.position_of(id);
      ASSERT_GT(position, before[counter]) << "claimer " << claimer << ", its id " << i;
      ASSERT_LE(position, stage.counters[counter].shard.last());
      before[counter] = position;
      all.push_back({position, counter, claimer});
    }
  }

  // All ids of one shard counter must have different positions (time and sequence number).
  std::sort(all.begin(), all.end(), [](const Claimed& a, const Claimed& b) {
    return a.position != b.position ? a.position < b.position : a.counter < b.counter;
  });
  size_t gap = 0;
  size_t turns = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    while (gap < gaps.size() && gaps[gap].end <= all[i].position) ++gap;
    ASSERT_TRUE(gap == gaps.size() || all[i].position < gaps[gap].begin)
        << "position " << all[i].position << " lies below floor " << gaps[gap].end
        << ", which came before limit " << gaps[gap].begin << " was raised";
    if (i == 0) continue;
    ASSERT_FALSE(all[i].position == all[i - 1].position && all[i].counter == all[i - 1].counter)
        << "position " << all[i].position << " was claimed by " << all[i - 1].claimer << " and "
        << all[i].claimer;
    turns += all[i].claimer != all[i - 1].claimer;
  }
  // The threads or processes that claim ids must compete, because the test detects no fault if they
  // run one after another.
  EXPECT_GT(turns, 50u);
  EXPECT_GT(gaps.size(), 100u);
  std::printf("%zu ids, %zu changes of claimer, %zu limits\n", all.size(), turns, gaps.size());
}

}  // namespace snowflake
