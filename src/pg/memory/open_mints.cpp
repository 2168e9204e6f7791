#include "pg/memory/open_mints.hpp"

#include "pg/memory/mark_hold.hpp"
#include "pg/server/session_events.hpp"

namespace snowflake::pg {

constinit MintRecord mint_record{};

namespace {

constinit MintSlot* own_slot = nullptr;

}  // namespace

OpenMints& own_mint_slot() {
  if (own_slot == nullptr) {
    install_session_events();
    own_slot = &hold.state->mint_slots()[static_cast<size_t>(own_proc_number())];
    own_slot->pid.store(MyProcPid, std::memory_order_release);
  }
  return own_slot->mints;
}

void leave_mint_slot() {
  end_open_mints();
  own_slot = nullptr;
}

void end_open_mints() {
  if (mint_record.is_open()) mint_record.close(own_slot->mints);
}

// If another backend has reused a slot (entry of a session in shared memory), the transaction of
// the earlier backend has ended.
OldestMint oldest_open_mint(const DatabaseState& state) {
  OldestMint oldest{OpenMints::kNone, 0};
  for (const MintSlot& slot : state.mint_slots()) {
    const uint64_t since = slot.mints.since();
    if (since < oldest.since) oldest = {since, slot.pid.load(std::memory_order_relaxed)};
  }
  return oldest;
}

}  // namespace snowflake::pg
