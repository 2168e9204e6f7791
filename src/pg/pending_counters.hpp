// Ids issued for one shard and not yet added to its counters: an addition per id would cost more
// than the id. Added up when another shard comes along, and at the end of the transaction.
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

extern PendingCounters pending;

// The greatest id of this transaction, of all shards, that is not pending any more; or 0. Kept up
// to date where the counters are flushed, for minting itself has no time for it.
extern uint64_t highest_flushed_id;

inline uint64_t highest_id_of_transaction() {
  return std::max(highest_flushed_id, pending.last_id);
}

inline void flush_pending_counters() {
  if (pending.word == nullptr) return;
  highest_flushed_id = highest_id_of_transaction();
  pending.word->counters.add(pending.ids, pending.batches, pending.borrowed, pending.last_id);
  pending = PendingCounters{};
}

inline void account(Shard& word, const Claim& claim, uint64_t batches, uint64_t last_id) {
  if (pending.word != &word) {
    flush_pending_counters();
    pending.word = &word;
  }
  pending.ids += claim.count;
  pending.batches += batches;
  pending.borrowed += claim.borrowed;
  pending.last_id = last_id;
}

}  // namespace snowflake::pg
