#include "pg/memory/pending_counters.hpp"

namespace snowflake::pg {

constinit PendingCounters pending[kPendingSlots]{};
constinit uint64_t highest_id_of_transaction = 0;

namespace {

// The list of used entries of `pending` avoids a search of all entries at the end of a transaction.
constinit uint16_t taken[kPendingSlots]{};
constinit uintptr_t taken_count = 0;

void flush(PendingCounters& slot) {
  slot.counter->statistics.add(slot.ids, slot.batches, slot.borrowed, slot.last_id);
  slot = PendingCounters{};
}

}  // namespace

void take_slot(PendingCounters& slot, Shard& counter) {
  if (slot.counter != nullptr)
    flush(slot);
  else
    taken[taken_count++] = static_cast<uint16_t>(&slot - pending);
  slot.counter = &counter;
}

void flush_pending_counters() {
  while (taken_count > 0) flush(pending[taken[--taken_count]]);
}

void end_pending_counters() {
  flush_pending_counters();
  highest_id_of_transaction = 0;
}

}  // namespace snowflake::pg
