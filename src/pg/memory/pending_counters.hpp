// Counts the ids of a session in private memory, and later adds the counts to the statistics in
// shared memory. An addition in shared memory for each id would cost more than the id itself. The
// counts of a session are added to shared memory at the end of the transaction. If two shards use
// the same entry of the array `pending`, the session adds the first shard's counts to shared memory
// at once. The array `pending` has 256 entries, and shards with consecutive numbers use consecutive
// entries.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/shard.hpp"

namespace snowflake::pg {

struct PendingCounters {
  Shard* counter;  // null: no id is pending
  uint64_t ids;
  uint64_t batches;
  uint64_t borrowed;
  uint64_t last_id;
};

inline constexpr uintptr_t kPendingSlots = 256;
extern PendingCounters pending[kPendingSlots];

// The greatest id that the current transaction has minted in any shard, or 0. Only
// "snowflake.commit_wait" needs this id.
extern uint64_t highest_id_of_transaction;

// Reserves `slot`, an entry of the array `pending`, for the shard whose statistics are in
// `counter`. If `slot` contains counts of a previous shard, take_slot() first adds the counts to
// shared memory. REQUIRES that `slot` is not yet reserved for `counter`.
void take_slot(PendingCounters& slot, Shard& counter);

void flush_pending_counters();
void end_pending_counters();

inline void account(Shard& counter, const Claim& claim, uint64_t batches, uint64_t last_id) {
  PendingCounters& slot =
      pending[reinterpret_cast<uintptr_t>(&counter) / sizeof(Shard) % kPendingSlots];
  if (slot.counter != &counter) [[unlikely]]
    take_slot(slot, counter);
  slot.ids += claim.count;
  slot.batches += batches;
  slot.borrowed += claim.borrowed;
  slot.last_id = last_id;
  highest_id_of_transaction = std::max(highest_id_of_transaction, last_id);
}

}  // namespace snowflake::pg
