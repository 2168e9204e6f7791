// settle() returns the settled tick, a time in the time unit of ids (tick). After settle() has
// returned, no new row whose id is before the settled tick can become visible. Consumers can read
// all rows with ids before the settled tick in id order, without missing a row.
//
// A transaction claims ids before it commits, so rows with smaller ids may become visible later.
// The settled tick is the earlier of two ticks:
//
//  - the earliest tick that the session of an open transaction has stored in shared memory. When a
//    transaction mints its first id, the session stores the tick of the clock in a variable in
//    shared memory (slot, class OpenMints).
//
//  - the tick to which settle() raises all shard counters (`floor`). Ids that are minted after
//    settle() has raised the shard counters are not before the tick `floor`.
//
// Guarantee: after settle() has returned a settled tick, no later snapshot contains a new row with
// an id of an earlier tick. The guarantee of settle() requires that the transaction that inserts a
// row also claims the row's id.
//
// The following proof shows the guarantee for a session whose id has an earlier time than the
// settled tick (result of settle()):
//
//  1. The function settle() raises all shard counters to the settled tick (its result) or to a
//     later tick. The id is before the settled tick, so the session claimed the id before settle()
//     raised the shard counter.
//
//  2. Every change of a shard counter is an atomic read-modify-write operation. A session that
//     mints an id changes the shard counter with release order, and settle() raises the shard
//     counter with acquire order. The function settle() therefore sees the tick that the session
//     stored in its slot (variable in shared memory) before minting the id. The tick in the slot is
//     at or before the time of the id.
//
//  3. Every tick that settle() reads in a slot (variable of a session) is at or after the settled
//     tick. The session's tick is at or before the time of its id. The function settle() did not
//     read the session's tick, because the session's tick is before the settled tick. The session
//     had therefore cleared its slot before settle() read the slot. A session clears its slot with
//     release order, after its commit is visible. The function settle() reads the slot with acquire
//     order.
//
//  4. Snapshots that are taken after settle() contain the rows of the session's transaction,
//     because the session cleared its slot only after its commit was visible.
//
//  5. A call of settle() can use a tick that another call of settle() stored in `raised_` or
//     `settled_`. The guarantee of settle() also holds for stored ticks, because settle() stores
//     ticks with release order and loads ticks with acquire order.
//
// The time in a claimed id is never before the clock reading of the claim. If the clock is set back
// during a transaction, the session stores the earlier clock reading in its slot.
#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "core/shard.hpp"

namespace snowflake {

// Each session has a variable in shared memory (slot) that shows whether its open transaction has
// claimed ids. The slot contains a tick (time unit) at or before the times of all ids that the
// session's open transaction has minted. Only the session itself writes its slot, but all sessions
// read it.
class OpenMints {
 public:
  static constexpr uint64_t kNone = UINT64_MAX;

  // Returns the tick (time unit) in the slot, or kNone if the session has no open transaction that
  // has claimed ids. The acquire load pairs with the release stores in open() and close().
  uint64_t since() const noexcept { return since_.load(std::memory_order_acquire); }

  // open() must be called before the session claims an id. A reader that reads the tick stored by
  // open() also sees the commit of the session's previous transaction, because open() stores with
  // release.
  void open(uint64_t tick) noexcept { since_.store(tick, std::memory_order_release); }

  // close() must be called after the transaction has become visible or was rolled back.
  void close() noexcept { since_.store(kNone, std::memory_order_release); }

 private:
  std::atomic<uint64_t> since_{kNone};
};

static_assert(sizeof(OpenMints) == 8 && std::atomic<uint64_t>::is_always_lock_free);

// A session's private copy of its slot in shared memory, which avoids a write to shared memory for
// each claim.
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

// Records the tick of the clock in the session's slot, and then claims ids. The function `slot()`
// returns the session's slot. The function `slot()` is called only if a new tick must be stored in
// the slot.
template <class Slot>
Claim claim_recorded(MintRecord& record, Slot slot, Shard& counter, const Layout& layout,
                     const Bounds& bounds, uint64_t wanted) {
  if (!record.covers(bounds.now)) [[unlikely]]
    record.open(slot(), bounds.now);
  return counter.claim(layout, bounds, wanted);
}

// All sessions that use the same shard counters share one Settled object.
class Settled {
 public:
  // Raises all shard counters to `tick`, unless another call of settle() has raised them. Returns
  // the settled tick. Later calls never return an earlier tick. The function `open_since()` returns
  // the earliest tick in the slots of all sessions that use these shard counters. The function
  // `prepared_since()` returns the earliest tick of prepared transactions, whose sessions have
  // cleared their slots. The function settle() first raises the shard counters, then calls
  // open_since(), and then prepared_since(). The argument `spread` must be equal to the
  // Bounds::spread with which all sessions mint ids.
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
  // Raises an atomic variable to at least `value`, with acquire and release.
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
