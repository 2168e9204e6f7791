#include "pg/cursor/open_mints.hpp"

#include <new>

#include "pg/server/session_events.hpp"

namespace snowflake::pg {

constinit MintRecord mint_record{};

namespace {

// Backends use a slot one after another: `database` is stored before a backend's first record, and
// removed after its last.
struct alignas(64) MintSlot {
  OpenMints mints;
  std::atomic<Oid> database;
  std::atomic<int> pid;
};

constinit MintSlot* slots = nullptr;
constinit MintSlot* own = nullptr;

// An aborted transaction has already closed it: PostgreSQL rolls back before it calls this.
void leave_slot(int, Datum) {
  if (mint_record.is_open()) mint_record.close(own->mints);
  own->database.store(InvalidOid, std::memory_order_release);
  own = nullptr;
}

}  // namespace

OpenMints& own_mint_slot() {
  if (own == nullptr) {
    install_session_events();
    on_shmem_exit(leave_slot, Datum{0});
    own = &slots[own_proc_number()];
    own->pid.store(MyProcPid, std::memory_order_relaxed);
    own->database.store(MyDatabaseId, std::memory_order_release);
  }
  return own->mints;
}

void end_open_mints() {
  if (mint_record.is_open()) mint_record.close(own->mints);
}

// If the slot belongs to another backend now, the transaction that was found has ended.
OldestMint oldest_open_mint() {
  OldestMint oldest{OpenMints::kNone, 0};
  for (int i = 0; i < MaxBackends; ++i) {
    const uint64_t since = slots[i].mints.since();
    if (since < oldest.since && slots[i].database.load(std::memory_order_acquire) == MyDatabaseId)
      oldest = {since, slots[i].pid.load(std::memory_order_relaxed)};
  }
  return oldest;
}

Size mint_slots_size() {
  return mul_size(static_cast<Size>(MaxBackends), sizeof(MintSlot));
}

void place_mint_slots(void* memory, bool found) {
  slots = static_cast<MintSlot*>(memory);
  if (found) return;
  for (int i = 0; i < MaxBackends; ++i) new (&slots[i]) MintSlot{};
}

}  // namespace snowflake::pg
