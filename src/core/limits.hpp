// The limit up to which a database may mint ids is a position (tick and sequence number) in shared
// memory. The limit is computed from the high-water mark and the end of the lease.
//
// The caller of a member of Limits must hold the locks that the member requires:
//
//  - *The server-wide lock* serializes calls of bind(), publish(), withdraw() and end_region(). The
//    server-wide lock also protects the lease state (see the REQUIRES comments in
//    lease_memory.hpp).
//
//  - *The page lock* of a high-water mark serializes calls of adopt() and record_written().
//
// Invariants:
//
//  1. Each limit is published with a generation number, and is valid only until the number changes.
//     To stop all sessions of a database from minting until they call bind() again, withdraw()
//     increases the generation number, and then clears the limit. A session first reads the limit,
//     and then checks that the generation number has not changed.
//
//  2. The limit of new ids decreases only when withdraw() changes the generation number.
//
//  3. Before a session calls publish(), the session calls adopt() and reopen(), which raise all
//     shard counters. The function adopt() raises the shard counters to the stored high-water mark.
//     The function reopen() raises the shard counters to begin_ms(), the lower bound of new ids in
//     the database's region. The function publish() stores the limit of new ids with release order.
//     A session that claims ids reads the limit with acquire order before it reads the shard
//     counter.
//
//  4. The argument `mark_ms` of publish() is never later than highest_ms(), the greatest high-water
//     mark that was written or adopted.
#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <algorithm>
#include <optional>

#include "core/atomic_max.hpp"
#include "core/lease_memory.hpp"

namespace snowflake {

// The function bind() returns a MarkBinding, which a session stores before it mints ids. A session
// mints ids in `region` until the generation number of its database changes.
struct MarkBinding {
  uint32_t generation;
  RegionHold region;
};

// `Word` is std::atomic. Unit tests replace std::atomic by a type that interrupts readers and kills
// writers.
template <template <class> class Word>
class BasicLimits {
 public:
  // Prepares a session to mint ids below the high-water mark of its database. The argument `mark`
  // is a number other than 0 that identifies the high-water mark, and `stored_ms` is the stored
  // value of the mark. The function bind() calls withdraw(), which invalidates the limit of new
  // ids, if `mark` differs from mark(). If a limit is published, bind() also calls withdraw() when
  // `stored_ms` is less than highest_ms(). If the session has a region and begin_ms() is 0, bind()
  // sets begin_ms() to `held.begin_ms` (at least 1). Later calls of bind() do not change
  // begin_ms(). REQUIRES the server-wide lock.
  MarkBinding bind(uint64_t mark, int64_t stored_ms, RegionHold held) noexcept {
    // While no limit of new ids is published, bind() ignores a lowered high-water mark. If each
    // call of bind() called withdraw(), sessions would force each other to call bind() again.
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

  // Publishes the limit below which sessions may claim ids, as computed from the high-water mark
  // and the lease. The argument `lease` is null if the region is static (not leased). Returns false
  // if the generation number has changed since the session read the number. REQUIRES the
  // server-wide lock.
  template <class Lease>
  bool publish(const Layout& layout, uint32_t generation, int64_t mark_ms, Lease* lease) noexcept {
    if (!is_current(generation)) return false;
    const int64_t covered_ms = lease == nullptr ? mark_ms : lease->cover(mark_ms);
    const uint64_t position = position_below(layout, covered_ms);
    // The release store pairs with the acquire load in read().
    if (position > limit_.load(std::memory_order_relaxed))
      limit_.store(position, std::memory_order_release);
    return true;
  }

  // Changes the generation number and clears the limit up to which sessions may mint ids, so that
  // every session must call bind() again. REQUIRES the server-wide lock.
  void withdraw() noexcept {
    // Only withdraw() changes the generation number, under the server-wide lock, so load and store
    // need not be one atomic operation. The function publish() stores the limit with release order.
    // After a session has loaded a newly published limit, it also loads the new generation number.
    // The functions publish() and withdraw() never run at the same time, because both require the
    // server-wide lock.
    generation_.store(generation_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    limit_.store(0, std::memory_order_relaxed);
    mark_.store(0, std::memory_order_relaxed);
  }

  // Calls withdraw() and sets begin_ms() to 0, because the database stops minting in its region.
  // The function LeaseMemory::forget() must call end_region() for each database before it clears
  // the leased region. REQUIRES the server-wide lock.
  void end_region() noexcept {
    withdraw();
    begin_ms_.store(0, std::memory_order_relaxed);
  }

  // True if a high-water mark of `stored_ms` or later was written or passed to adopt() since shared
  // memory was created.
  bool has_recorded(int64_t stored_ms) const noexcept { return stored_ms <= highest_ms(); }

  // Raises the shard counters to a high-water mark that was not written through this object, such
  // as the mark of an earlier server run. The function `raise_counters` raises all shard counters
  // of the database to at least its argument. REQUIRES the page lock: other sessions must not see
  // has_recorded() true before the shard counters are raised.
  template <class RaiseCounters>
  void adopt(const Layout& layout, int64_t stored_ms, RaiseCounters raise_counters) noexcept {
    if (has_recorded(stored_ms)) return;
    raise_counters(position_from(layout, stored_ms));
    raise_to(floor_ms_, stored_ms);
    raise_to(highest_ms_, stored_ms);
  }

  // Records that the stored high-water mark is now `mark_ms`. Before sessions may mint ids up to
  // this mark, the caller must flush the mark to disk. REQUIRES the page lock.
  void record_written(int64_t mark_ms) noexcept { raise_to(highest_ms_, mark_ms); }

  // Raises the shard counters to begin_ms(), the lower bound of new ids in the session's region. If
  // reopen() did not raise the shard counters, ids from before a crash, or ids of another database,
  // could repeat. After bind() has returned a binding with a region, the session must call reopen()
  // next.
  template <class RaiseCounters>
  static void reopen(const Layout& layout, const MarkBinding& binding,
                     RaiseCounters raise_counters) {
    raise_counters(position_from(layout, binding.region.begin_ms));
  }

  // Returns the limit up to which sessions may mint ids, or no value if the session's generation
  // number is out of date.
  std::optional<uint64_t> take(uint32_t generation) const noexcept {
    const uint64_t limit = read();
    if (!is_current(generation)) return std::nullopt;
    return limit;
  }

  // Returns the limit of new ids as a position (tick and sequence number), or 0 if sessions must
  // not mint ids. The function read() does not check whether the caller's generation number is out
  // of date. Sessions that mint ids must read the limit with take(), which checks the generation
  // number.
  uint64_t read() const noexcept { return limit_.load(std::memory_order_acquire); }

  // The generation number can be read with a relaxed load. If a session reads a generation number
  // that withdraw() has replaced, the session has also read 0 or a limit from before withdraw(). An
  // outdated limit of new ids cannot cause equal ids. Before a limit is published, the high-water
  // mark is stored, and the lease state covers the limit (LeaseMemory::cover()).
  bool is_current(uint32_t generation) const noexcept {
    return generation_.load(std::memory_order_relaxed) == generation;
  }

  uint32_t generation() const noexcept { return generation_.load(std::memory_order_relaxed); }
  // Returns the argument `mark` of the last call of bind(), or 0 after withdraw(). REQUIRES the
  // server-wide lock (shared).
  uint64_t mark() const noexcept { return mark_.load(std::memory_order_relaxed); }
  // The function highest_ms() returns the greatest high-water mark that was written or passed to
  // adopt(). The function floor_ms() returns the greatest high-water mark that was passed to
  // adopt(). Before the first high-water mark is written or passed to adopt(), highest_ms() and
  // floor_ms() return 0.
  int64_t highest_ms() const noexcept { return highest_ms_.load(std::memory_order_relaxed); }
  int64_t floor_ms() const noexcept { return floor_ms_.load(std::memory_order_relaxed); }
  // Returns the time from which this database mints ids in its region, or 0 if the time is not set.
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
