// Tests a call of claim() in every interleaving with other sessions. Between two atomic operations
// of the call, other sessions claim ids or raise the shard counter. Tests that run threads reach
// some interleavings only by luck, or never on some machines.
//
// shard.hpp is compiled with the test's atomic type, in another namespace, so that the linker does
// not mix test code and real code. The standard headers that shard.hpp uses must be included before
// shard.hpp, because this file redefines the name `atomic`. Headers from src/core must not be
// included before shard.hpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <functional>
#include <set>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace interleaving {

// Runs before each atomic step. If before_step() returns true, the next weak compare-and-swap fails
// spuriously.
std::function<bool()> before_step;

bool step() {
  return before_step && before_step();
}

}  // namespace interleaving

namespace std {  // used by shard.hpp

template <class T>
class stepped_atomic {
 public:
  static constexpr bool is_always_lock_free = true;

  operator T() const { return value_; }
  T load(memory_order) const {
    interleaving::step();
    return value_;
  }
  void store(T value, memory_order = memory_order_seq_cst) {
    interleaving::step();
    value_ = value;
  }
  T exchange(T value, memory_order) {
    interleaving::step();
    return std::exchange(value_, value);
  }
  T fetch_add(T value, memory_order) {
    interleaving::step();
    return std::exchange(value_, value_ + value);
  }
  bool compare_exchange_weak(T& expected, T desired, memory_order) {
    if (interleaving::step() || value_ != expected) {
      expected = value_;
      return false;
    }
    value_ = desired;
    return true;
  }
  bool compare_exchange_strong(T& expected, T desired, memory_order order) {
    interleaving::step();
    const auto undisturbed = std::exchange(interleaving::before_step, nullptr);
    const bool exchanged = compare_exchange_weak(expected, desired, order);
    interleaving::before_step = undisturbed;
    return exchanged;
  }

 private:
  T value_;
};

}  // namespace std

#define atomic stepped_atomic
#define snowflake snowflake_stepped
#include "core/shard.hpp"
#undef atomic
#undef snowflake

namespace snowflake_stepped {
namespace {

constexpr Layout layout = parse_layout("41/2/4", 0, kDefaultEpoch).layout;  // 16 ids a tick
constexpr uint64_t kStart = 10 * 16;
constexpr Bounds kBounds{10, 4, kStart + 60, 0};

// Enumerates all sequences of choices, like an odometer whose number of digits varies.
class Choices {
 public:
  size_t choose(size_t options) {
    if (at_ == path_.size()) path_.push_back({0, options});
    return path_[at_++].first;
  }
  bool next() {
    path_.resize(at_);
    at_ = 0;
    while (!path_.empty() && path_.back().first + 1 == path_.back().second) path_.pop_back();
    if (path_.empty()) return false;
    ++path_.back().first;
    return true;
  }

 private:
  std::vector<std::pair<size_t, size_t>> path_;  // choice, options
  size_t at_ = 0;
};

class Interleaving {
 public:
  Interleaving() { counter_.raise_floor(kStart); }

  Claim claim(const Bounds& bounds, uint64_t wanted) {
    const uint64_t above = greatest_;
    const uint64_t floor = floor_;
    const Claim claim = counter_.claim(layout, bounds, wanted);
    if (claim.outcome != Outcome::claimed) return claim;
    EXPECT_GT(claim.first, above);
    EXPECT_GE(claim.first, floor);
    EXPECT_LT(claim.last(), bounds.limit);
    EXPECT_LE(layout.tick_of_position(claim.last()), bounds.now + bounds.lead);
    for (uint64_t p = claim.first; p <= claim.last(); ++p)
      EXPECT_TRUE(claimed_.insert(p).second) << "position " << p << " is claimed twice";
    greatest_ = std::max(greatest_, claim.last());
    return claim;
  }

  void raise_floor(uint64_t floor) {
    counter_.raise_floor(floor);
    floor_ = std::max(floor_, floor);
  }

  // Runs the function `victim`, and disturbs it at most four times between its steps. A disturbance
  // is another claim, a raised shard counter, or a compare-and-swap that fails spuriously.
  template <class Victim>
  void disturb(Choices& choices, Victim victim) {
    int left = 4;
    interleaving::before_step = [&] {
      const size_t choice = left == 0 ? 0 : choices.choose(7);
      if (choice == 0) return false;
      --left;
      const auto others = std::exchange(interleaving::before_step, nullptr);
      const uint64_t last = counter_.last();
      if (choice == 1) claim(kBounds, 1);
      if (choice == 2) claim(kBounds, 7);
      if (choice == 3) claim({12, 1, UINT64_MAX, 3}, 1);
      if (choice == 4) raise_floor(last + 2);
      if (choice == 5) raise_floor(last + 30);
      interleaving::before_step = others;
      return choice == 6;
    };
    victim();
    interleaving::before_step = nullptr;
  }

  void finish() {
    EXPECT_EQ(claim({1, 1000, UINT64_MAX, 0}, 1).outcome, Outcome::claimed);
    EXPECT_EQ(claim({100, 0, UINT64_MAX, 0}, 1).first, 100u * 16);
  }

  uint64_t last() const { return counter_.last(); }

 private:
  Shard counter_{};
  std::set<uint64_t> claimed_;
  uint64_t greatest_ = 0;
  uint64_t floor_ = kStart;
};

template <class Body>
size_t explore(Body body) {
  Choices choices;
  size_t schedules = 0;
  do {
    body(choices);
    ++schedules;
  } while (choices.next() && !testing::Test::HasFailure());
  return schedules;
}

TEST(ShardInterleaving, OfAClaim) {
  size_t schedules = 0;
  for (const uint64_t wanted : {uint64_t{1}, uint64_t{5}, uint64_t{40}})
    for (const Bounds& bounds : {kBounds, Bounds{11, 0, UINT64_MAX, 0}, Bounds{11, 3, 13 * 16, 7}})
      schedules += explore([&](Choices& choices) {
        Interleaving all;
        all.disturb(choices, [&] {
          const Claim claim = all.claim(bounds, wanted);
          const uint64_t stop = std::min(bounds.limit, (bounds.now + bounds.lead + 1) * 16);
          if (claim.outcome == Outcome::claimed) {
            EXPECT_EQ(claim.count, std::min(wanted, stop - claim.first));
          } else {
            EXPECT_GE(claim.first, stop);
          }
        });
        all.finish();
      });
  EXPECT_GT(schedules, 1000u);
}

TEST(ShardInterleaving, OfAFloor) {
  size_t schedules = 0;
  for (const uint64_t floor : {kStart - 5, kStart + 2, kStart + 8, kStart + 35, kStart + 500})
    schedules += explore([&](Choices& choices) {
      Interleaving all;
      all.disturb(choices, [&] { all.raise_floor(floor); });
      EXPECT_GE(all.last() + 1, floor);
      all.finish();
    });
  EXPECT_GT(schedules, 500u);
}

// Sessions may mint ids only below a limit. One session raises the shard counters to `floor`, and
// then raises the limit for new ids from `old` to a value above `floor`. A session that still uses
// the limit `old` must not claim a position at or above `old`.
TEST(ShardInterleaving, OfAnOldLimitAndAFloor) {
  constexpr uint64_t old = kStart + 4;
  constexpr uint64_t floor = old + 9;
  for (size_t moment = 0; moment < 6; ++moment)
    for (const uint64_t wanted : {uint64_t{1}, uint64_t{30}}) {
      Interleaving all;
      size_t steps = 0;
      interleaving::before_step = [&] {
        if (steps++ != moment) return false;
        const auto others = std::exchange(interleaving::before_step, nullptr);
        all.raise_floor(floor);
        EXPECT_GE(all.claim({10, 4, floor + 20, 0}, 2).first, floor);
        interleaving::before_step = others;
        return false;
      };
      const Claim claim = all.claim({10, 4, old, 0}, wanted);
      interleaving::before_step = nullptr;
      if (claim.outcome == Outcome::claimed) {
        EXPECT_LT(claim.last(), old);
      } else {
        EXPECT_EQ(claim.outcome, Outcome::at_limit);
      }
    }
}

TEST(ShardInterleaving, OfCounters) {
  explore([](Choices& choices) {
    Counters counters{};
    uint64_t ids = 5;
    uint64_t greatest = 1000;
    int left = 4;
    counters.last_id.store(900);
    interleaving::before_step = [&] {
      const size_t choice = left == 0 ? 0 : choices.choose(4);
      if (choice == 0) return false;
      --left;
      if (choice == 3) return true;
      const auto others = std::exchange(interleaving::before_step, nullptr);
      const uint64_t last = choice == 1 ? 950 : 2000;
      counters.add(choice, 1, 1, last);
      ids += choice;
      greatest = std::max(greatest, last);
      interleaving::before_step = others;
      return false;
    };
    counters.add(5, 1, 1, 1000);
    interleaving::before_step = nullptr;
    EXPECT_EQ(counters.ids, ids);
    EXPECT_EQ(counters.batches, counters.borrowed);
    EXPECT_EQ(counters.last_id, greatest);
  });
}

}  // namespace
}  // namespace snowflake_stepped
