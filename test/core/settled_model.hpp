// Runs the code of shard.hpp and settled.hpp in every interleaving of atomic steps.
//
// shard.hpp and settled.hpp are compiled with the test's atomic type, in another namespace, so that
// the linker does not mix test code and real code. No core header may be included before
// settled_model.hpp.
//
// A simulated session (actor) is a function that can stop after each step and continue later,
// without a stack of its own. For each step, the actor runs again from its beginning, replays the
// results of earlier steps, makes one step, and leaves with longjmp(). The data of a simulated
// session (actor) must be local variables without destructors, because longjmp() skips destructors.
#pragma once

#include <gtest/gtest.h>
#include <setjmp.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepped {

struct Actor {
  std::function<void()> body;
  std::vector<uint64_t> known;  // results of earlier steps
  size_t at = 0;
  bool may_step = false;
  bool done = false;
  jmp_buf left;
};

// Points to the simulated session (actor) that makes the next step. If `current` is null, no
// simulated session runs, and step() executes an atomic operation immediately.
inline Actor* current = nullptr;
// Decides whether a weak compare-and-swap fails spuriously although it could succeed.
inline std::function<bool()> fails_for_no_reason;

template <class Make>
uint64_t step(Make make) {
  if (current == nullptr) return make();
  Actor& actor = *current;
  if (actor.at < actor.known.size()) return actor.known[actor.at++];
  if (!actor.may_step) longjmp(actor.left, 1);
  actor.may_step = false;
  actor.known.push_back(make());
  return actor.known[actor.at++];
}

inline void resume(Actor& actor) {
  current = &actor;
  actor.at = 0;
  actor.may_step = true;
  if (setjmp(actor.left) == 0) {
    actor.body();
    actor.done = true;
  }
  current = nullptr;
}

}  // namespace stepped

namespace std {  // used by the core headers

template <class T>
class interrupted_atomic {
 public:
  static constexpr bool is_always_lock_free = true;

  constexpr interrupted_atomic() noexcept : value_{} {}
  constexpr interrupted_atomic(T value) noexcept : value_(value) {}

  T load(memory_order) const noexcept {
    return static_cast<T>(stepped::step([&] { return static_cast<uint64_t>(value_); }));
  }
  void store(T value, memory_order) noexcept {
    stepped::step([&] { return static_cast<uint64_t>(value_ = value); });
  }
  T fetch_add(T value, memory_order) noexcept {
    return static_cast<T>(
        stepped::step([&] { return static_cast<uint64_t>(exchange(value_, value_ + value)); }));
  }
  bool compare_exchange_weak(T& expected, T desired, memory_order) noexcept {
    const T wanted = expected;
    const uint64_t result = stepped::step([&] {
      const T found = value_;
      const bool exchanged =
          found == wanted && !(stepped::fails_for_no_reason && stepped::fails_for_no_reason());
      if (exchanged) value_ = desired;
      return static_cast<uint64_t>(found) << 1 | (exchanged ? 1 : 0);
    });
    if ((result & 1) == 0) expected = static_cast<T>(result >> 1);
    return (result & 1) != 0;
  }

 private:
  T value_;
};

}  // namespace std

#define atomic interrupted_atomic
#define snowflake snowflake_interrupted
#include "core/settled.hpp"
#undef atomic
#undef snowflake

namespace stepped {

// Tries all schedules with at most `preemptions` preemptions and at most `failures` spurious
// failures of compare-and-swaps. A schedule decides which simulated session (actor) makes each
// step, and which compare-and-swaps fail spuriously. A preemption is a switch to another actor
// although the last actor could continue.
class Schedules {
 public:
  Schedules(int preemptions, int failures) : preemptions_(preemptions), failures_(failures) {}

  void run(std::vector<Actor*> actors) {
    int preemptions_left = preemptions_;
    int failures_left = failures_;
    fails_for_no_reason = [&] {
      if (failures_left == 0 || choose(2) == 0) return false;
      --failures_left;
      return true;
    };
    size_t last = actors.size();
    for (;;) {
      size_t waiting[8];
      size_t count = 0;
      if (last < actors.size() && !actors[last]->done) waiting[count++] = last;
      const bool could_go_on = count == 1;
      if (!could_go_on || preemptions_left > 0)
        for (size_t i = 0; i < actors.size(); ++i)
          if (!actors[i]->done && i != last) waiting[count++] = i;
      if (count == 0) break;
      const size_t next = waiting[choose(count)];
      if (could_go_on && next != last) --preemptions_left;
      last = next;
      resume(*actors[next]);
    }
    fails_for_no_reason = nullptr;
  }

  // Advances to the next schedule, and returns false after the last one.
  bool next() {
    path_.resize(at_);
    at_ = 0;
    while (!path_.empty() && path_.back().first + 1 == path_.back().second) path_.pop_back();
    if (path_.empty()) return false;
    ++path_.back().first;
    return true;
  }

 private:
  size_t choose(size_t options) {
    if (options == 1) return 0;
    if (at_ == path_.size()) path_.push_back({0, options});
    return path_[at_++].first;
  }

  int preemptions_;
  int failures_;
  std::vector<std::pair<size_t, size_t>> path_;  // choice, options
  size_t at_ = 0;
};

}  // namespace stepped
