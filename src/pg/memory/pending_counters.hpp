// Counts the ids of a session in private memory, and later adds the counts to the statistics in
// shared memory. An addition in shared memory for each id would cost more than the id itself. The
// counts of a session are added to shared memory at the end of the transaction. The counts of a
// shard are added to shared memory at once if the session needs the table entry for another shard.
// Up to 256 shards with consecutive numbers have different entries in the session's table.
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

// Adds the counts in `slot` to the counters of their shard in shared memory. Afterwards `slot`
// counts ids of the shard `counter`. REQUIRES that `slot` is empty or counts ids of a shard other
// than `counter`.
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
