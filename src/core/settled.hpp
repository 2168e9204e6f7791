// A cursor for consumers: the tick below which no id can appear any more.
//
// A transaction claims ids before the transaction commits. So a consumer that reads all ids greater
// than the last id read skips rows that commit late. The ids of rows that commit late have two
// lower bounds, which are ticks. The first bound is the least tick in the slots. Each session
// records the tick of the first claim of its open transaction in its slot (OpenMints). The second
// bound is a floor, to which all counters are raised: no id below the floor is claimed any more. S
// is the smaller of the two bounds.
//
// Guarantee: after settle() has returned S, no later snapshot contains a new row with an id of a
// tick before S. The guarantee holds for a row if the transaction that inserts the row has also
// claimed the id.
//
// Proof, for a claim of a tick before S, and the call of settle() that returned S:
//  1. The floor is S or more. So in the modification order of the counter, the claim precedes the
//     exchange that raises the counter to the floor. All changes of the counter are exchanges.
//  2. The exchange of the claim is a release. The exchange that raises the counter to the floor
//     acquires that release. The exchange that reads a later stored value also acquires the release
//     of the claim. So the settle() that raised the counters sees everything that the claiming
//     session did before the claim. Before the claim, the session had recorded a tick that is not
//     later than the claimed tick.
//  3. S is at most every tick in the slots. So the claiming session had closed its slot when
//     settle() read the slots, because the slot no longer contained the recorded tick. A session
//     closes its slot with release, after the session's commit is visible. settle() reads the slot
//     with acquire.
//  4. So any later snapshot shows the commit of the claiming transaction.
//  5. settle() may use a floor or a result of another call. `raised_` and `settled_` are written
//     with release and read with acquire. So steps 2 to 4 also hold for a floor or a result of
//     another call.
//
// The tick of a claim is not less than the clock reading of the claim. If the clock is set back, a
// later claim of the same transaction may have an earlier reading. After the clock was set back,
// the earlier reading is recorded.
#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "core/shard.hpp"

namespace snowflake {

// The slot of a session in shared memory. All claims of the session's open transaction have the
// recorded tick or a later tick. Only the session writes its slot, and all sessions read the slot.
class OpenMints {
 public:
  static constexpr uint64_t kNone = UINT64_MAX;

  // Returns kNone unless the session has an open transaction that has claimed ids. Acquire: pairs
  // with the stores below.
  uint64_t since() const noexcept { return since_.load(std::memory_order_acquire); }

  // Records the tick before a claim. Release, as in close(): a reader of the recorded tick must see
  // the commit of the previous transaction. The reader may have missed the close of the previous
  // transaction.
  void open(uint64_t tick) noexcept { since_.store(tick, std::memory_order_release); }

  // Clears the slot after the transaction has become visible or was rolled back.
  void close() noexcept { since_.store(kNone, std::memory_order_release); }

 private:
  std::atomic<uint64_t> since_{kNone};
};

static_assert(sizeof(OpenMints) == 8 && std::atomic<uint64_t>::is_always_lock_free);

// The session's local copy of its slot, so that a transaction writes the slot only once.
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

// Records the tick before the call of Shard::claim(). `slot()` returns the session's OpenMints, and
// is called only for the first claim of a transaction.
template <class Slot>
Claim claim_recorded(MintRecord& record, Slot slot, Shard& counter, const Layout& layout,
                     const Bounds& bounds, uint64_t wanted) {
  if (!record.covers(bounds.now)) [[unlikely]]
    record.open(slot(), bounds.now);
  return counter.claim(layout, bounds, wanted);
}

// Computes S for the sessions that share shard counters.
class Settled {
 public:
  // Raises the counters to `tick`, at most once for all callers, and returns S. Rows with ids of
  // ticks before S cannot be added later. The result never goes down. `open_since()` returns the
  // least since() of all sessions that use the same counters as the caller. `prepared_since()`
  // returns the least tick of prepared transactions, whose sessions have closed their slots. After
  // settle() has raised the floor, settle() calls open_since() and then prepared_since(). `spread`
  // must be the spread that the sessions pass to Shard::claim().
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

  // The tick to which settle() raised the counters.
  uint64_t raised() const noexcept { return raised_.load(std::memory_order_acquire); }

 private:
  // Raises `word` to at least `value`, and returns the new value with acquire.
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
