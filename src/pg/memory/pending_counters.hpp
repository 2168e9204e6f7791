// Ids issued and not yet added to the counters of their shards: an addition to shared memory per id
// would cost more than the id. Added up at the end of the transaction, and where two shards meet in
// a slot of the table. Neighbouring shards have slots of their own, so that a session which goes
// through 256 of them in turn adds nothing up on the way.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/shard.hpp"

namespace snowflake::pg {

struct PendingCounters {
  Shard* word;  // null: nothing is pending
  uint64_t ids;
  uint64_t batches;
  uint64_t borrowed;
  uint64_t last_id;
};

inline constexpr uintptr_t kPendingSlots = 256;
extern PendingCounters pending[kPendingSlots];

// The greatest id of this transaction, of all shards, or 0: commit wait rests on it.
extern uint64_t highest_id_of_transaction;

// For a slot that is empty or another word's.
void take_slot(PendingCounters& slot, Shard& word);

void flush_pending_counters();
// The transaction is over.
void end_pending_counters();

inline void account(Shard& word, const Claim& claim, uint64_t batches, uint64_t last_id) {
  PendingCounters& slot =
      pending[reinterpret_cast<uintptr_t>(&word) / sizeof(Shard) % kPendingSlots];
  if (slot.word != &word) [[unlikely]]
    take_slot(slot, word);
  slot.ids += claim.count;
  slot.batches += batches;
  slot.borrowed += claim.borrowed;
  slot.last_id = last_id;
  highest_id_of_transaction = std::max(highest_id_of_transaction, last_id);
}

}  // namespace snowflake::pg
