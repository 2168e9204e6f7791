// Claims ids of one shard. The state of a shard is one 64-bit integer, the shard counter. The shard
// counter contains the last claimed position (time and sequence number of an id).
//
// Thread safety: any number of threads and processes may call every member of Shard on the same
// memory. The members of Shard do not wait for locks, allocate memory or make system calls.
//
// Positions (tick and sequence number) that are claimed from one shard counter have these
// properties:
//
//  1. No position is claimed twice, and later claims get higher positions. To mint ids, a session
//     raises the shard counter to the position of the last new id with one compare-and-swap.
//
//  2. A new id is at most Bounds::lead ticks (time units) ahead of the clock reading Bounds::now.
//
//  3. A claimed position is below the limit that the caller passed to claim().
//
//  4. After raise_floor(p) returns, no claim gets a position below p, which is called the floor.
//
// Memory order: relaxed compare-and-swap operations on the shard counter would be enough to make
// ids unique. Acquire and release operations are needed for two reasons:
//
//  - A session that sees a new limit of ids must also see the shard counters that were raised
//    before the limit was published. A session that publishes a limit stores the limit with release
//    order (see pg/mark/high_water.cpp). A session that mints ids loads the limit with acquire
//    order before it loads the shard counter.
//
//  - Before the first id of a transaction is minted, the session stores a clock reading (tick) in
//    shared memory. The function settle() raises a shard counter, and must then see the clock
//    readings that sessions stored before they minted lower ids (see core/settled.hpp). A claim
//    stores the shard counter with release order, and raise_floor() loads the shard counter with
//    acquire order. Every change of the shard counter is an atomic read-modify-write operation,
//    which continues the C++ release sequences of earlier changes. A call of raise_floor() sees the
//    ticks that all earlier sessions stored, not only the tick of the last session.
#pragma once

#include <algorithm>
#include <atomic>
#include <initializer_list>
#include <type_traits>

#include "core/atomic_max.hpp"
#include "core/layout.hpp"

namespace snowflake {

struct Bounds {
  uint64_t now;    // clock reading, in ticks
  uint64_t lead;   // greatest number of ticks (time units) by which ids may be ahead of the clock
  uint64_t limit;  // first position (time and sequence number) that must not be claimed
  // The first sequence number of a new tick (time unit) is (previous sequence number + 1) % spread,
  // or 0 if `spread` is 0.
  uint64_t spread;
};

enum class Outcome : uint8_t {
  claimed,
  ahead_of_clock,  // the caller must wait until the clock advances
  at_limit,        // the caller must first raise the high-water mark
  exhausted,       // the next id is after the last time that the layout of ids can encode
};

struct Claim {
  Outcome outcome;
  uint64_t first;  // the first claimed position, or the next free position if the claim failed
  uint64_t count;
  uint64_t borrowed;  // ticks by which the minted ids moved the counter further ahead of the clock

  uint64_t last() const noexcept { return first + count - 1; }
};

// Tells the processor that the thread waits in a short loop.
inline void spin_pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

// Statistics of a shard, in the same cache line as the shard counter. A concurrent reader of the
// statistics may see only a part of an update.
struct Counters {
  std::atomic<uint64_t> last_id;  // greatest counted id
  std::atomic<uint64_t> ids;
  std::atomic<uint64_t> batches;   // calls that returned an array of ids
  std::atomic<uint64_t> borrowed;  // sum of Claim::borrowed, in ticks
  std::atomic<uint64_t> waits;
  std::atomic<uint64_t> waited_us;
  std::atomic<uint64_t> refusals;  // calls that failed because the clock was behind

  void add(uint64_t issued, uint64_t arrays, uint64_t ticks, uint64_t last) noexcept {
    ids.fetch_add(issued, std::memory_order_relaxed);
    if (arrays != 0) batches.fetch_add(arrays, std::memory_order_relaxed);
    if (ticks != 0) borrowed.fetch_add(ticks, std::memory_order_relaxed);
    raise_to(last_id, last);
  }

  void reset() noexcept {
    for (auto* counter : {&ids, &batches, &borrowed, &waits, &waited_us, &refusals})
      if (counter->load(std::memory_order_relaxed) != 0)
        counter->store(0, std::memory_order_relaxed);
  }
};

class alignas(64) Shard {
 public:
  // Claims 1 to `wanted` consecutive positions (tick and sequence number), as many as the bounds
  // allow. REQUIRES wanted > 0, bounds.now <= layout.last_minted_tick(), bounds.spread <=
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
      // After a failed compare-and-swap, a pause lets the session that owns the cache line of the
      // shard counter claim several ids. Without the pause after a failed compare-and-swap, two
      // competing sessions mint a fifth fewer ids.
      for (int i = 0; i < 4; ++i) spin_pause();
      last = last_.load(std::memory_order_relaxed);
    }
  }

  // Raises the shard counter, so that later claims get positions of at least `floor`. The function
  // raise_floor() loads the shard counter with acquire order. After raise_floor(), the caller sees
  // everything that sessions wrote to shared memory before they minted ids below `floor`.
  void raise_floor(uint64_t floor) noexcept {
    raise(floor, [](uint64_t) { return uint64_t{0}; });
  }

  // Raises the shard counter to the start of a tick (time unit). The argument `spread` has the same
  // meaning as Bounds::spread.
  void raise_to_tick(const Layout& layout, uint64_t tick, uint64_t spread) noexcept {
    raise(layout.first_position(tick),
          [&](uint64_t last) { return spread == 0 ? uint64_t{0} : start(layout, last, spread); });
  }

  // Returns the shard counter. All later ids of the shard have higher positions (time and sequence
  // number) than the shard counter.
  uint64_t last() const noexcept { return last_.load(std::memory_order_relaxed); }

  Counters statistics;

 private:
  // Returns the reason why a session could not mint an id at the position `first` (tick and
  // sequence number). If the clock and the limit for new ids both prevent minting, why() returns
  // ahead_of_clock. The caller of why() waits for the clock, and does not raise the high-water
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

  // Returns the sequence number of the first id in a new tick (time unit). The argument `last` is
  // the last claimed position (tick and sequence number). REQUIRES spread != 0.
  static uint64_t start(const Layout& layout, uint64_t last, uint64_t spread) noexcept {
    return ((last & layout.sequence_mask()) + 1) % spread;
  }

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

// Objects in shared memory must not contain hidden locks or pointers, or need a destructor.
static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(sizeof(Shard) == 64 && alignof(Shard) == 64);
static_assert(std::is_standard_layout_v<Counters> && std::is_trivially_destructible_v<Shard>);

// Writes the ids of `count` consecutive positions (tick and sequence number) to `out`. Ids of one
// tick are consecutive integers, so compilers vectorise the inner loop.
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
