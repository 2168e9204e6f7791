// The state of a shard: one 64-bit word, and how ids are claimed from it.
//
// Thread safety: every member may be called by any number of threads and processes over the same
// memory. Nothing blocks, allocates or calls the system.
//
// Invariants, for the ids claimed from one word:
//  1. Positions are claimed at most once and only upwards: each claim moves the word from `last` to
//     its own last position in one compare-and-swap.
//  2. No claimed tick is more than `lead` ahead of the clock reading that the claim was given.
//  3. No claimed position is at or above the limit that the claim was given.
//  4. After raise_floor(p) returns, no position below p is claimed any more.
//
// Memory order: uniqueness needs only the word's own modification order, for which relaxed would
// do. A floor must not be reordered against the limit that relies on it: whoever publishes
// a limit raises the floor first and publishes with release; whoever claims reads the limit with
// acquire, and so sees the raised word (see pg/mark/high_water.cpp). And whoever raises a floor has
// to see what those did before that have claimed below it (see core/settled.hpp): a claim's
// exchange is a release, and the floor acquires what it reads or replaces. The word is changed by
// exchanges only, so a release reaches every later floor. On x86 each of these is the same
// instruction as a relaxed one.
#pragma once

#include <algorithm>
#include <atomic>
#include <initializer_list>
#include <type_traits>

#include "core/atomic_max.hpp"
#include "core/layout.hpp"

namespace snowflake {

// Bounds that a claim may not exceed.
struct Bounds {
  uint64_t now;     // the tick that the clock shows
  uint64_t lead;    // how many ticks ids may be ahead of it
  uint64_t limit;   // first position that the durable mark does not cover
  uint64_t spread;  // 0, or begin a new tick's sequence at (last sequence + 1) mod spread
};

enum class Outcome : uint8_t {
  claimed,
  ahead_of_clock,  // `first` is more than the lead ahead: wait
  at_limit,        // `first` is not covered by the mark: extend it
  exhausted,       // `first` is past the layout's range: for good
};

struct Claim {
  Outcome outcome;
  uint64_t first;     // the first position claimed, or the one that could not be
  uint64_t count;     // how many positions were claimed, from `first` upwards
  uint64_t borrowed;  // ticks that the claim opened before the clock came to them

  uint64_t last() const noexcept { return first + count - 1; }
};

// Tells the processor that this is a loop that waits for another.
inline void spin_pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

// Counters, kept in the word's own cache line. Approximate only while they are being added to.
struct Counters {
  std::atomic<uint64_t> last_id;  // the greatest id accounted for
  std::atomic<uint64_t> ids;
  std::atomic<uint64_t> batches;   // calls that asked for an array
  std::atomic<uint64_t> borrowed;  // ticks, see Claim
  std::atomic<uint64_t> waits;
  std::atomic<uint64_t> waited_us;
  std::atomic<uint64_t> refusals;  // calls refused because of the clock

  void add(uint64_t issued, uint64_t arrays, uint64_t ticks, uint64_t last) noexcept {
    ids.fetch_add(issued, std::memory_order_relaxed);
    if (arrays != 0) batches.fetch_add(arrays, std::memory_order_relaxed);
    if (ticks != 0) borrowed.fetch_add(ticks, std::memory_order_relaxed);
    raise_to(last_id, last);
  }

  // The last id is not a count, and stays.
  void reset() noexcept {
    for (auto* counter : {&ids, &batches, &borrowed, &waits, &waited_us, &refusals})
      if (counter->load(std::memory_order_relaxed) != 0)
        counter->store(0, std::memory_order_relaxed);
  }
};

class alignas(64) Shard {
 public:
  // Claims at least one and at most `wanted` positions, as many as the bounds have room for.
  // REQUIRES: wanted > 0, bounds.now <= layout.last_minted_tick(), bounds.spread <=
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
      // The winner gets to claim a few more while it has the cache line: two claimers that take it
      // from each other for every id get a fifth less done.
      for (int i = 0; i < 4; ++i) spin_pause();
      last = last_.load(std::memory_order_relaxed);
    }
  }

  // Makes every later position at least `floor`, and sees what all did before that have claimed
  // below it.
  void raise_floor(uint64_t floor) noexcept {
    raise(floor, [](uint64_t) { return uint64_t{0}; });
  }

  // The same for the first position of a tick. Its sequence begins where a claim would have begun
  // it: a floor that is raised between any two claims leaves them spread.
  void raise_to_tick(const Layout& layout, uint64_t tick, uint64_t spread) noexcept {
    raise(layout.first_position(tick),
          [&](uint64_t last) { return spread == 0 ? uint64_t{0} : start(layout, last, spread); });
  }

  // The last position that was claimed or that a floor went over.
  uint64_t last() const noexcept { return last_.load(std::memory_order_relaxed); }

  Counters counters;

 private:
  // The lead comes before the limit: a call that will be refused must not extend the mark.
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

  // Where the sequence of a new tick begins after this position. REQUIRES spread != 0.
  static uint64_t start(const Layout& layout, uint64_t last, uint64_t spread) noexcept {
    return ((last & layout.sequence_mask()) + 1) % spread;
  }

  // `skipped(last)` positions more are given up.
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

// The words live in memory that processes share: no hidden lock, no pointer, nothing to destroy.
static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(sizeof(Shard) == 64 && alignof(Shard) == 64);
static_assert(std::is_standard_layout_v<Counters> && std::is_trivially_destructible_v<Shard>);

// Writes the ids of `count` consecutive positions. A tick's ids are consecutive numbers, so the
// inner loop is one that compilers vectorise.
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
