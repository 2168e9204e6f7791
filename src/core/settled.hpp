// After settle() has returned the settled tick, no new row with an id before this tick (time in an
// id) can become visible. Consumers can read all rows with ids before the settled tick in id order,
// without missing a row.
//
// A transaction claims ids before it commits, so rows with smaller ids may become visible later.
// The function settle() returns the earlier of the following two ticks (settled tick):
//
//  - the earliest tick that the session of an open transaction has stored in shared memory. When a
//    transaction mints its first id, the session stores the tick of the clock in a variable in
//    shared memory (slot, class OpenMints).
//
//  - the tick to which settle() raises all shard counters (`floor`). Ids that are minted after
//    settle() has raised the shard counters are not before the tick `floor`.
//
// Guarantee: after settle() has returned a tick T, later snapshots contain no new rows with ids
// before T. The guarantee of settle() applies only to rows whose ids are minted by the transaction
// that inserts the rows.
//
// The following proof considers a session that has minted an id of an earlier tick than the tick
// that settle() returns:
//
//  1. The function settle() raises all shard counters to the tick that it returns, or to a later
//     tick. After settle() has raised a shard counter, new ids of the shard are not before the tick
//     that settle() returns. If an id is before the result of settle(), a session minted the id
//     before settle() raised the shard counter.
//
//  2. Every change of a shard counter is an atomic read-modify-write operation. A session changes
//     the shard counter with memory_order_release when it mints an id, and settle() raises the
//     counter with memory_order_acquire. Before minting the id, the session stored in its slot
//     (variable in shared memory) a tick at or before the id's time. Because settle() raises the
//     counter with acquire order, settle() reads from the session's slot the stored tick or a later
//     value.
//
//  3. The result of settle() is at or before every tick that settle() reads from the slots of
//     sessions. The id is before the result of settle(), so settle() did not read the tick that the
//     session stored before it minted the id. The session had therefore cleared its slot before
//     settle() read the slot. A session clears its slot with a release store after its commit is
//     visible, and settle() reads the slot with an acquire load.
//
//  4. The commit of the transaction was therefore visible before settle() returned, so all later
//     snapshots contain the rows of the transaction.
//
//  5. The members `raised_` and `settled_` contain ticks that earlier calls of settle() have
//     computed. A later call of settle() also sees all that the earlier calls saw, because ticks
//     are stored with release order and loaded with acquire order.
//
// The time in an id is never before the clock reading with which the id was minted. If the clock is
// set back during a transaction, the session stores the earlier clock reading in its slot.
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

  // Returns the tick that open() stored in shared memory, or kNone if the session has no open
  // transaction that has claimed ids. The acquire load pairs with the release stores in open() and
  // close().
  uint64_t since() const noexcept { return since_.load(std::memory_order_acquire); }

  // open() must be called before the session claims an id. The release store makes the end of the
  // session's previous transaction visible to every session that reads the new tick.
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

// Records the tick of the clock in the session's slot (variable in shared memory), which `slot()`
// returns, and then claims ids. If the session has already recorded the present tick or an earlier
// tick, claim_recorded() does not call `slot()`.
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
  // `prepared_since()` returns the earliest tick that prepared transactions have recorded. PREPARE
  // TRANSACTION clears the slot of its session, so open_since() does not include prepared
  // transactions. The function settle() first raises the shard counters, then calls open_since(),
  // and then prepared_since(). The argument `spread` determines the first sequence number of each
  // tick, and must be equal to Bounds::spread of all sessions.
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
