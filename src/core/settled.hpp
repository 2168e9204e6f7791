// A cursor that loses nothing: the tick below which no id can still appear.
//
// Ids are claimed before their transaction commits, so "greater than the last one that I saw" steps
// past rows that commit late. Two things are known here: below which tick an open transaction has
// claimed nothing, which its session notes once (OpenMints), and that nothing is claimed below a
// floor any more to which all words were raised. S is the least of both.
//
// Promise: in every snapshot that is taken after settle() returned S, the rows are final whose ids
// are of ticks before S and were claimed by the transaction that inserts them.
//
// Argument, for a claim of a tick before S and the settle() that found S. The floor was S or more,
// so the claim comes before it in the order of the word's changes, all of which are exchanges. The
// claim's exchange is a release and the floor acquires, whatever later value it reads, so the
// settle() that raised the words has seen what the session did before: it had noted a tick that is
// not after the claim's. S is not above what the slot said, so the slot had changed since: it was
// closed, which comes after the commit has become visible, and by a release that the slot's reader
// acquires. Whoever takes a snapshot after that sees the commit. What others raised, and what they
// found, is handed on by the same pair of orders in `raised_` and `settled_`.
//
// A claim is not below the clock reading that bounds it. A later claim of the transaction may be
// bounded by an earlier reading, of a clock that was set back: then that is noted.
#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "core/shard.hpp"

namespace snowflake {

// A session's slot: what its open transaction has claimed is of this tick or later. Written by the
// session alone, read by all; in memory that processes share.
class OpenMints {
 public:
  static constexpr uint64_t kNone = UINT64_MAX;

  // kNone where no transaction is open that has claimed. Acquire, with both of the below.
  uint64_t since() const noexcept { return since_.load(std::memory_order_acquire); }

  // Before a claim. A release as close() is: whoever sees this one, and not the close of the last
  // transaction, relies on it for that as well.
  void open(uint64_t tick) noexcept { since_.store(tick, std::memory_order_release); }

  // After the transaction has become visible, or has been rolled back.
  void close() noexcept { since_.store(kNone, std::memory_order_release); }

 private:
  std::atomic<uint64_t> since_{kNone};
};

static_assert(sizeof(OpenMints) == 8 && std::atomic<uint64_t>::is_always_lock_free);

// What the session itself knows of its slot, so that a transaction stores there once.
class MintNote {
 public:
  constexpr MintNote() noexcept = default;

  bool covers(uint64_t tick) const noexcept { return since_ <= tick; }
  bool is_open() const noexcept { return since_ != OpenMints::kNone; }
  uint64_t since() const noexcept { return since_; }

  void open(OpenMints& slot, uint64_t tick) noexcept {
    slot.open(tick);
    since_ = tick;
  }
  void close(OpenMints& slot) noexcept {
    slot.close();
    since_ = OpenMints::kNone;
  }

 private:
  uint64_t since_ = OpenMints::kNone;
};

// Shard::claim(), noted first. `slot()` returns the session's OpenMints, and is called for the
// first claim of a transaction only.
template <class Slot>
Claim claim_noted(MintNote& note, Slot slot, Shard& word, const Layout& layout,
                  const Bounds& bounds, uint64_t wanted) {
  if (!note.covers(bounds.now)) [[unlikely]]
    note.open(slot(), bounds.now);
  return word.claim(layout, bounds, wanted);
}

// What the sessions of a generator have settled.
class Settled {
 public:
  // Raises the words to `tick`, at most once for all callers, and returns the tick before which
  // everything is final; it never goes down. `open_since()` returns the least since() of the
  // sessions of these words; `prepared_since()` the same of transactions whose session has handed
  // them on and closed its slot since. They are called in this order, after the floor. `spread` is
  // that of the claims' bounds.
  template <class Words, class OpenSince, class PreparedSince>
  uint64_t settle(const Layout& layout, Words&& words, uint64_t tick, OpenSince open_since,
                  PreparedSince prepared_since, uint64_t spread = 0) {
    uint64_t floor = raised_.load(std::memory_order_acquire);
    if (floor < tick) {
      for (Shard& word : words) word.raise_to_tick(layout, tick, spread);
      floor = publish(raised_, tick);
    }
    const uint64_t open = std::min(floor, static_cast<uint64_t>(open_since()));
    return publish(settled_, std::min(open, static_cast<uint64_t>(prepared_since())));
  }

  // To where the words were raised for this.
  uint64_t raised() const noexcept { return raised_.load(std::memory_order_acquire); }

 private:
  // Makes the word at least `value`, and returns what it is then, with all that led to it.
  static uint64_t publish(std::atomic<uint64_t>& word, uint64_t value) noexcept {
    uint64_t seen = word.load(std::memory_order_acquire);
    while (seen < value && !word.compare_exchange_weak(seen, value, std::memory_order_acq_rel)) {
    }
    return std::max(seen, value);
  }

  std::atomic<uint64_t> raised_;
  std::atomic<uint64_t> settled_;
};

}  // namespace snowflake
