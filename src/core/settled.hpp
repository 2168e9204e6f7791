// Computes the tick S before which no new id can become visible. Consumers use S to read rows in
// the order of ids.
//
// A transaction claims ids before it commits, so rows with smaller ids may become visible later. S
// is the smaller of two lower bounds of the ids of rows that become visible late:
//  - the least tick in the slots of all sessions. A session stores the tick of the first claim of
//    its open transaction in its slot (OpenMints).
//  - the floor. settle() raises all shard counters to the floor, so later claims get higher ids.
//
// Guarantee: after settle() has returned S, no later snapshot contains a new row with an id of a
// tick before S. The guarantee requires that the transaction that inserts the row also claims the
// id.
//
// Proof for a claim of a tick before S:
//  1. settle() raises the shard counter to the floor, which is at least S. So the claim precedes
//     the raise in the modification order of the shard counter.
//  2. Every change of a shard counter is an atomic exchange. The exchange of the claim is a
//     release, and raising the counter is an acquire. So settle() sees everything that the session
//     stored before the claim, also the tick in its slot. A session never claims a tick before the
//     tick in its slot.
//  3. S is at most every tick in the slots, so the session had cleared its slot before settle()
//     read the slot. A session clears its slot with release, after its commit is visible. settle()
//     reads the slot with acquire.
//  4. So every snapshot after settle() contains the commit of the transaction that made the claim.
//  5. The proof also holds if settle() uses the floor or the result of another call. `raised_` and
//     `settled_` are written with release and read with acquire.
//
// A claimed tick is not before the clock reading of the claim. If the clock is set back during a
// transaction, the session stores the earlier clock reading in its slot.
#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "core/shard.hpp"

namespace snowflake {

// A session's slot in shared memory. The slot contains a tick that is not after any claim of the
// session's open transaction. Only the session itself writes its slot, but all sessions read it.
class OpenMints {
 public:
  static constexpr uint64_t kNone = UINT64_MAX;

  // Returns kNone unless the session has an open transaction that has claimed ids. Acquire: pairs
  // with the stores in open() and close().
  uint64_t since() const noexcept { return since_.load(std::memory_order_acquire); }

  // Must be called before a claim. Release: a reader that missed close() of the previous
  // transaction must see the commit of that transaction.
  void open(uint64_t tick) noexcept { since_.store(tick, std::memory_order_release); }

  // Must be called after the transaction has become visible or was rolled back.
  void close() noexcept { since_.store(kNone, std::memory_order_release); }

 private:
  std::atomic<uint64_t> since_{kNone};
};

static_assert(sizeof(OpenMints) == 8 && std::atomic<uint64_t>::is_always_lock_free);

// A session's private copy of its slot, which saves writes to shared memory.
class MintRecord {
 public:
  constexpr MintRecord() noexcept = default;

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

// Records the tick of the clock in the session's slot, and then claims. `slot()` returns the slot,
// and is called only if the slot must be written.
template <class Slot>
Claim claim_recorded(MintRecord& record, Slot slot, Shard& counter, const Layout& layout,
                     const Bounds& bounds, uint64_t wanted) {
  if (!record.covers(bounds.now)) [[unlikely]]
    record.open(slot(), bounds.now);
  return counter.claim(layout, bounds, wanted);
}

// One object for all sessions that use the same shard counters.
class Settled {
 public:
  // Raises the shard counters to `tick`, once for all callers, and returns S, which never falls.
  // `open_since()` returns the least since() of all sessions that use the same counters.
  // `prepared_since()` returns the least tick of prepared transactions, whose sessions have cleared
  // their slots. settle() first raises the shard counters, then calls open_since(), and then
  // prepared_since(). `spread` must be equal to Bounds::spread of all claims.
  template <class ShardCounters, class OpenSince, class PreparedSince>
  uint64_t settle(const Layout& layout, ShardCounters&& counters, uint64_t tick,
                  OpenSince open_since, PreparedSince prepared_since, uint64_t spread = 0) {
    uint64_t floor = raised_.load(std::memory_order_acquire);
    if (floor < tick) {
      for (Shard& counter : counters) counter.raise_to_tick(layout, tick, spread);
      floor = publish(raised_, tick);
    }
    const uint64_t open = std::min(floor, static_cast<uint64_t>(open_since()));
    return publish(settled_, std::min(open, static_cast<uint64_t>(prepared_since())));
  }

  uint64_t raised() const noexcept { return raised_.load(std::memory_order_acquire); }

 private:
  // Raises `word` to at least `value`, with acquire and release.
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
