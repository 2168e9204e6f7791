// State that the sessions of a database share beside its words: the published limit, and what it
// follows from. Positions below the limit may be claimed.
//
// Three kinds of exclusion, which the caller provides, and each member names:
//  - *the lock* excludes bind(), publish(), withdraw(), end_region() and start_database() from one
//    another, and from the members of the lease's memory that name it;
//  - *the page* excludes adopt() and note_written() of one stored mark from one another;
//  - what names neither is called by anybody at any time.
//
// Invariants
//  1. A limit is good in the generation that it was published in. The generation rises before the
//     limit is withdrawn, and a session compares generations after it has read a limit: what it
//     takes is of its own generation.
//  2. Within a generation the limit only rises.
//  3. The words are raised to a mark, and to where a region begins, before a limit that follows
//     from it is published (release), and a claimer reads the limit (acquire) before the word.
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

// A session's binding to the mark: as long as the generation is current, it mints in this region.
struct MarkBinding {
  uint32_t generation;
  RegionHold region;
};

// Word: std::atomic, or what a test interrupts a reader and kills a writer with.
template <template <class> class Word>
class BasicLimits {
 public:
  // Takes limits from this mark from now on (a number of the caller's, not 0), whose stored value
  // is `stored_ms`. Ends the generation where the limit came from another mark, or from a value
  // that the stored one has been lowered below. Where the ids of a region begin is settled once for
  // each holding of it: what is published later is of other databases, or of these words.
  // REQUIRES the lock.
  MarkBinding bind(uint64_t mark, int64_t stored_ms, RegionHold held) noexcept {
    // Withdraw only if a limit is published: otherwise, while the mark is low, every session that
    // binds would invalidate all the others.
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

  // Publishes the limit that follows from a mark which is durable, and from the lease, null where
  // nothing is leased. False where the generation is over. REQUIRES the lock.
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

  // Ends the generation: every session has to bind anew. REQUIRES the lock.
  void withdraw() noexcept {
    // Only here the generation changes, so load and store need not be one step. Release: the lock
    // orders it before a later limit for publishers, and that limit's release for its readers.
    generation_.store(generation_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    limit_.store(0, std::memory_order_relaxed);
    mark_.store(0, std::memory_order_relaxed);
  }

  // The region is about to be forgotten. REQUIRES the lock.
  void end_region() noexcept {
    withdraw();
    begin_ms_.store(0, std::memory_order_relaxed);
  }

  // The place is another database's from now on, with new words; the generation goes on.
  // REQUIRES the lock, and that no session is bound.
  void start_database() noexcept {
    withdraw();
    highest_ms_.store(0, std::memory_order_relaxed);
    floor_ms_.store(0, std::memory_order_relaxed);
    begin_ms_.store(0, std::memory_order_relaxed);
  }

  // Whether a stored mark was written or adopted since shared memory began.
  bool has_heard_of(int64_t stored_ms) const noexcept { return stored_ms <= highest_ms(); }

  // A stored mark of an earlier boot, or that was raised from outside. `raise_words` makes every
  // later position of the database at least the one that it is given. REQUIRES the page, so that
  // nobody finds a mark heard of before the words are raised to it.
  template <class RaiseWords>
  void adopt(const Layout& layout, int64_t stored_ms, RaiseWords raise_words) noexcept {
    if (has_heard_of(stored_ms)) return;
    raise_words(position_from(layout, stored_ms));
    raise_to(floor_ms_, stored_ms);
    raise_to(highest_ms_, stored_ms);
  }

  // The stored mark is this now, and will be flushed before it is published. REQUIRES the page.
  void note_written(int64_t mark_ms) noexcept { raise_to(highest_ms_, mark_ms); }

  // The session's first act after bind(), where it has a region: ids of it that another database
  // of this server issued under the same shard, or this one before a crash, are not issued again.
  template <class RaiseWords>
  static void reopen(const Layout& layout, const MarkBinding& binding, RaiseWords raise_words) {
    raise_words(position_from(layout, binding.region.begin_ms));
  }

  // The limit of this generation; nothing where it is over.
  std::optional<uint64_t> take(uint32_t generation) const noexcept {
    const uint64_t limit = read();
    if (!is_current(generation)) return std::nullopt;
    return limit;
  }

  // The published limit, 0: none. Of whatever generation: to claim below it, take() it.
  uint64_t read() const noexcept { return limit_.load(std::memory_order_acquire); }

  // Relaxed: a claim that has begun is not called back, so one that begins a moment after the
  // generation has ended is no worse; what it may use is below a limit that covers it.
  bool is_current(uint32_t generation) const noexcept {
    return generation_.load(std::memory_order_relaxed) == generation;
  }

  uint32_t generation() const noexcept { return generation_.load(std::memory_order_relaxed); }
  // The mark that the limit is taken from, 0: none. REQUIRES the lock, shared.
  uint64_t mark() const noexcept { return mark_.load(std::memory_order_relaxed); }
  // The greatest mark that was written or adopted, and that was adopted; 0: none.
  int64_t highest_ms() const noexcept { return highest_ms_.load(std::memory_order_relaxed); }
  int64_t floor_ms() const noexcept { return floor_ms_.load(std::memory_order_relaxed); }
  // The time at which ids of the region that is held begin in this database, 0: not settled yet.
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
