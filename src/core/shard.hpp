// The state of a shard is one 64-bit word, the shard counter. Ids are claimed from the shard
// counter.
//
// Thread safety: any number of threads and processes may call every member of Shard on the same
// memory. No member blocks, allocates or makes a system call.
//
// Invariants for the ids claimed from one shard counter:
//  1. A position is claimed at most once, and later claims get higher positions. Each claim
//     replaces the value of the counter, `last`, by the last claimed position in one
//     compare-and-swap.
//  2. No claimed tick is more than `lead` ahead of the clock reading of the claim.
//  3. No claimed position is at or above the limit of the claim.
//  4. After raise_floor(p) returns, no position below p is claimed any more.
//
// Memory order: uniqueness needs only the modification order of the counter, for which relaxed
// operations would be enough. A visible floor, and visible stores of sessions, need stronger memory
// orders.
//  - A floor must be visible before the limit that relies on the floor. The publisher of a limit
//    raises the floor first and publishes the limit with release. A claimer reads the limit with
//    acquire, and then reads the raised counter (see pg/mark/high_water.cpp).
//  - After raise_floor() returns, the caller must see all stores of a session before the session's
//    claim of a position below the floor (see core/settled.hpp). The exchange of a claim is a
//    release, and raise_floor() acquires the value that raise_floor() reads or replaces. Only
//    exchanges change the counter, so every later raise_floor() acquires the release of every
//    earlier claim.
// On x86, a release or acquire operation is the same instruction as a relaxed operation.
#pragma once

#include <algorithm>
#include <atomic>
#include <initializer_list>
#include <type_traits>

#include "core/atomic_max.hpp"
#include "core/layout.hpp"

namespace snowflake {

// The bounds that a claim must not exceed.
struct Bounds {
  uint64_t now;    // the tick of the clock reading
  uint64_t lead;   // how many ticks ids may be ahead of `now`
  uint64_t limit;  // first position that the durable mark does not cover
  // If `spread` is 0, each new tick begins at sequence 0, else at (last sequence + 1) % spread.
  uint64_t spread;
};

enum class Outcome : uint8_t {
  claimed,
  ahead_of_clock,  // `first` is ahead of the clock by more than the lead: wait
  at_limit,        // the mark does not cover `first`: raise the mark
  exhausted,       // `first` is after the last position of the layout: no later claim can succeed
};

struct Claim {
  Outcome outcome;
  uint64_t first;     // the first claimed position, or the position that could not be claimed
  uint64_t count;     // the number of claimed positions, from `first` upwards
  uint64_t borrowed;  // the number of ticks ahead of the clock that only this claim has used so far

  uint64_t last() const noexcept { return first + count - 1; }
};

// Tells the processor that the present loop waits for another thread.
inline void spin_pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

// Statistics, in the cache line of the counter. If a session reads the statistics during an update,
// the values are approximate.
struct Counters {
  std::atomic<uint64_t> last_id;  // the greatest id that was counted
  std::atomic<uint64_t> ids;
  std::atomic<uint64_t> batches;   // calls that returned an array
  std::atomic<uint64_t> borrowed;  // ticks, see Claim
  std::atomic<uint64_t> waits;
  std::atomic<uint64_t> waited_us;
  std::atomic<uint64_t> refusals;  // calls that failed because the clock was behind

  void add(uint64_t issued, uint64_t arrays, uint64_t ticks, uint64_t last) noexcept {
    ids.fetch_add(issued, std::memory_order_relaxed);
    if (arrays != 0) batches.fetch_add(arrays, std::memory_order_relaxed);
    if (ticks != 0) borrowed.fetch_add(ticks, std::memory_order_relaxed);
    raise_to(last_id, last);
  }

  // A reset does not change last_id, because last_id is not a count.
  void reset() noexcept {
    for (auto* counter : {&ids, &batches, &borrowed, &waits, &waited_us, &refusals})
      if (counter->load(std::memory_order_relaxed) != 0)
        counter->store(0, std::memory_order_relaxed);
  }
};

class alignas(64) Shard {
 public:
  // Claims at least one position and at most `wanted` positions, as many as the bounds allow.
  // REQUIRES wanted > 0, bounds.now <= layout.last_minted_tick(), bounds.spread <=
  // layout.ids_per_tick().
  Claim claim(const Layout& layout, const Bounds& bounds, uint64_t wanted) noexcept {
    const uint64_t now = layout.first_position(bounds.now);
    const uint64_t stop = std::min(
        {layout.first_position(bounds.now + bounds.lead + 1), layout.end_position(), bounds.limit});
    uint64_t last = last_.load(std::memory_order_relaxed);
    for (;;) {
      uint64_t first = last + 1;
      if (first < now) {
        first = now;
        if (bounds.spread != 0) [[unlikely]]
          first += start(layout, last, bounds.spread);
      }
      if (first >= stop) [[unlikely]]
        return {why(layout, bounds, first), first, 0, 0};
      const uint64_t count = std::min(wanted, stop - first);
      const uint64_t next = first + count - 1;
      if (last_.compare_exchange_weak(last, next, std::memory_order_release))
        return {Outcome::claimed, first, count, borrowed(layout, bounds, last, next)};
      // After a failed exchange, a pause lets the claimer that has the cache line claim a few more
      // ids. If two claimers exchanged the cache line for every id, the claimers would mint a fifth
      // fewer ids.
      for (int i = 0; i < 4; ++i) spin_pause();
      last = last_.load(std::memory_order_relaxed);
    }
  }

  // After raise_floor(), every claimed position is at least `floor`. After raise_floor(), the
  // caller sees all stores that sessions made before the sessions claimed positions below `floor`.
  void raise_floor(uint64_t floor) noexcept {
    raise(floor, [](uint64_t) { return uint64_t{0}; });
  }

  // Raises the floor to the first position of a tick. The sequence begins at the number that a
  // claim would choose, so ids stay spread if a floor is raised between two claims.
  void raise_to_tick(const Layout& layout, uint64_t tick, uint64_t spread) noexcept {
    raise(layout.first_position(tick),
          [&](uint64_t last) { return spread == 0 ? uint64_t{0} : start(layout, last, spread); });
  }

  // The last position that was claimed or skipped by a floor.
  uint64_t last() const noexcept { return last_.load(std::memory_order_relaxed); }

  Counters statistics;

 private:
  // Checks the lead before the limit, because a call that fails due to the clock must not raise the
  // mark.
  static Outcome why(const Layout& layout, const Bounds& bounds, uint64_t first) noexcept {
    if (first >= layout.end_position()) return Outcome::exhausted;
    if (layout.tick_of_position(first) > bounds.now + bounds.lead) return Outcome::ahead_of_clock;
    return Outcome::at_limit;
  }

  static uint64_t borrowed(const Layout& layout, const Bounds& bounds, uint64_t last,
                           uint64_t next) noexcept {
    const uint64_t tick = layout.tick_of_position(next);
    if (tick <= bounds.now) return 0;
    return tick - std::max(bounds.now, layout.tick_of_position(last));
  }

  // Returns the start of the sequence in a new tick after a position. REQUIRES spread != 0.
  static uint64_t start(const Layout& layout, uint64_t last, uint64_t spread) noexcept {
    return ((last & layout.sequence_mask()) + 1) % spread;
  }

  // Raises the counter to at least `floor` plus `skipped(last)`.
  template <class Skipped>
  void raise(uint64_t floor, Skipped skipped) noexcept {
    if (floor == 0) return;
    uint64_t last = last_.load(std::memory_order_acquire);
    while (last < floor - 1 && !last_.compare_exchange_weak(last, floor - 1 + skipped(last),
                                                            std::memory_order_acquire)) {
    }
  }

  std::atomic<uint64_t> last_;
};

// Processes share the counters, so a counter must not contain a hidden lock or a pointer, or have a
// destructor.
static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(sizeof(Shard) == 64 && alignof(Shard) == 64);
static_assert(std::is_standard_layout_v<Counters> && std::is_trivially_destructible_v<Shard>);

// Writes the ids of `count` consecutive positions. The ids of a tick are consecutive numbers, so
// compilers vectorise the inner loop.
inline void write_ids(const Layout& layout, uint32_t region, uint32_t shard, uint64_t first,
                      uint64_t count, int64_t* out) noexcept {
  while (count > 0) {
    const uint64_t left = layout.ids_per_tick() - (first & layout.sequence_mask());
    const uint64_t run = std::min(left, count);
    const uint64_t id = layout.id(first, region, shard);
    for (uint64_t i = 0; i < run; ++i) out[i] = static_cast<int64_t>(id + i);
    out += run;
    first += run;
    count -= run;
  }
}

}  // namespace snowflake
