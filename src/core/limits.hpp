// The published limit of a database: sessions of the database may claim only positions below the
// limit. The limit follows from the stored mark and the lease. All sessions of the database share
// the limit and the shard counters.
//
// The caller provides exclusion. Each member of Limits names the kind of exclusion that the member
// needs:
//  - *the lock* excludes bind(), publish(), withdraw() and end_region() from one another. The lock
//    also excludes the members of LeaseMemory that require the lock;
//  - *the page* excludes adopt() and record_written() of one stored mark from one another;
//  - members that name neither the lock nor the page may be called at any time.
//
// Invariants
//  1. A limit is valid only in the generation in which the limit was published. The generation
//     increases before the limit is withdrawn, and a session compares generations after the session
//     has read a limit. So a session uses only limits of the session's generation.
//  2. Within a generation the limit only rises.
//  3. A limit follows from a mark and from the start of a region. The shard counters are raised to
//     the mark and to the start of the region before the limit is published (release). A claimer
//     reads the limit (acquire), then the counter.
//  4. highest_ms() is at least every mark that a published limit follows from.
#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <algorithm>
#include <optional>

#include "core/atomic_max.hpp"
#include "core/lease_memory.hpp"

namespace snowflake {

// The binding of a session to the mark. While `generation` is current, the bound session mints in
// this region.
struct MarkBinding {
  uint32_t generation;
  RegionHold region;
};

// The template argument Word is std::atomic, or a type with which tests interrupt readers and kill
// writers.
template <template <class> class Word>
class BasicLimits {
 public:
  // Binds a session to the mark: from now on, published limits follow from this mark. `mark` is a
  // number other than 0 that the caller chose, and `stored_ms` is the stored value. If the present
  // limit follows from another mark, or from a value above the stored value, the generation of the
  // limit ends. The first call after the region was taken sets the start of the region. Later calls
  // of bind() do not change the start of the region. REQUIRES the lock.
  MarkBinding bind(uint64_t mark, int64_t stored_ms, RegionHold held) noexcept {
    // If no limit is published, a lowered mark does not end the generation. If a lowered mark ended
    // the generation, each session that binds while the mark is low would invalidate the bindings
    // of all other sessions.
    const bool lowered = stored_ms < highest_ms() && read() != 0;
    if (this->mark() != mark || lowered) withdraw();
    mark_.store(mark, std::memory_order_relaxed);
    if (held.region != kNoRegion) {
      if (begin_ms() == 0)
        begin_ms_.store(std::max<int64_t>(held.begin_ms, 1), std::memory_order_relaxed);
      held.begin_ms = begin_ms();
    }
    return {generation_.load(std::memory_order_relaxed), held};
  }

  // Publishes the limit that follows from a durable mark and from the lease. `lease` is null if the
  // region is static. Returns false if the generation has ended. REQUIRES the lock.
  template <class Lease>
  bool publish(const Layout& layout, uint32_t generation, int64_t mark_ms, Lease* lease) noexcept {
    if (!is_current(generation)) return false;
    const int64_t covered_ms = lease == nullptr ? mark_ms : lease->cover(mark_ms);
    const uint64_t position = position_below(layout, covered_ms);
    // Release: pairs with the acquire in read().
    if (position > limit_.load(std::memory_order_relaxed))
      limit_.store(position, std::memory_order_release);
    return true;
  }

  // Ends the generation, so that every session must bind again. REQUIRES the lock.
  void withdraw() noexcept {
    // Only withdraw() changes the generation, so load and store need not be one atomic step. A
    // later publisher sees this store, because the publisher holds the lock. A reader of a later
    // limit sees this store, because the later limit is published with release.
    generation_.store(generation_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    limit_.store(0, std::memory_order_relaxed);
    mark_.store(0, std::memory_order_relaxed);
  }

  // Ends the generation before the region is cleared. REQUIRES the lock.
  void end_region() noexcept {
    withdraw();
    begin_ms_.store(0, std::memory_order_relaxed);
  }

  // Whether a stored mark was written or adopted since shared memory was created.
  bool has_recorded(int64_t stored_ms) const noexcept { return stored_ms <= highest_ms(); }

  // Adopts a stored mark of an earlier server run, or a stored mark that was raised outside this
  // class. `raise_counters` raises all shard counters of the database to at least its argument.
  // REQUIRES the page: other sessions must not see has_recorded() true before the shard counters
  // are raised.
  template <class RaiseCounters>
  void adopt(const Layout& layout, int64_t stored_ms, RaiseCounters raise_counters) noexcept {
    if (has_recorded(stored_ms)) return;
    raise_counters(position_from(layout, stored_ms));
    raise_to(floor_ms_, stored_ms);
    raise_to(highest_ms_, stored_ms);
  }

  // Records that the mark is stored with the value `mark_ms`. The caller flushes the mark before it
  // publishes the value. REQUIRES the page.
  void record_written(int64_t mark_ms) noexcept { raise_to(highest_ms_, mark_ms); }

  // Raises the shard counters to the start of the region. After bind(), a session with a region
  // must call this function before anything else. Before a crash, or in another database of this
  // server, ids may have been minted in the same shard and region. The ids from before must not be
  // repeated.
  template <class RaiseCounters>
  static void reopen(const Layout& layout, const MarkBinding& binding,
                     RaiseCounters raise_counters) {
    raise_counters(position_from(layout, binding.region.begin_ms));
  }

  // Returns the limit of the session's generation, or no value if the generation has ended.
  std::optional<uint64_t> take(uint32_t generation) const noexcept {
    const uint64_t limit = read();
    if (!is_current(generation)) return std::nullopt;
    return limit;
  }

  // Returns the published limit of any generation, or 0. A claim must use take() instead.
  uint64_t read() const noexcept { return limit_.load(std::memory_order_acquire); }

  // Relaxed: a claim just after the end of the generation is as safe as a claim just before the
  // end. The limit that the claim has read covers the claimed ids before and after the end of the
  // generation.
  bool is_current(uint32_t generation) const noexcept {
    return generation_.load(std::memory_order_relaxed) == generation;
  }

  uint32_t generation() const noexcept { return generation_.load(std::memory_order_relaxed); }
  // The mark from which the limit follows, or 0. REQUIRES the lock, shared.
  uint64_t mark() const noexcept { return mark_.load(std::memory_order_relaxed); }
  // highest_ms() is the greatest mark that was written or adopted, or 0. floor_ms() is the greatest
  // mark that was adopted, or 0.
  int64_t highest_ms() const noexcept { return highest_ms_.load(std::memory_order_relaxed); }
  int64_t floor_ms() const noexcept { return floor_ms_.load(std::memory_order_relaxed); }
  // Returns the start of the held region's ids in this database, or 0 if the start is not set yet.
  int64_t begin_ms() const noexcept { return begin_ms_.load(std::memory_order_relaxed); }

 private:
  Word<uint64_t> mark_;
  Word<uint32_t> generation_;
  Word<uint64_t> limit_;
  Word<int64_t> highest_ms_;
  Word<int64_t> floor_ms_;
  Word<int64_t> begin_ms_;
};

using Limits = BasicLimits<AtomicWord>;
static_assert(sizeof(Limits) == 48 && std::atomic<uint64_t>::is_always_lock_free);

}  // namespace snowflake
