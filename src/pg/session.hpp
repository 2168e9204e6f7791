// What a backend keeps between calls: its hold on the database's high-water mark, whether the seal
// was checked, and counters that have not been added up yet.
#pragma once

#include <cstdint>

#include "pg/members.hpp"
#include "pg/shared_state.hpp"

namespace snowflake::pg {

struct Session {
  // Valid while `attached`: the slot, the mark it was loaded from, and the slot's generation then.
  bool attached;
  Slot* slot;
  Oid mark;
  Oid mark_storage;
  uint32_t generation;
  uint64_t limit;      // as published when last looked; it only rises within a generation
  uint64_t attention;  // from this position on, see to the mark after a claim

  bool sealed;      // the seal was found good in this transaction
  Members members;  // or incomplete: look them up

  uint64_t last_now;  // the clock at the last call, in ticks

  // A shard that this session drove ahead of the clock, or -1, and the time that it reached: no
  // later id of it is older.
  int ahead_shard = -1;
  int64_t ahead_ms;

  bool minted;
  int64_t last_id;

  // Issued for one shard and not yet added to its counters: an addition per id would cost more
  // than the id.
  Shard* pending_word;
  uint64_t pending_ids;
  uint64_t pending_batches;
  uint64_t pending_borrowed;
  uint64_t pending_last_id;

  bool holds_limit() const {
    return attached && slot->generation.load(std::memory_order_relaxed) == generation;
  }
};

extern Session session;

// Watches for the end of transactions and for changes of the members. Call before relying on
// `attached`, `sealed` or `members`.
void watch_session();

// The members of the extension, looked up once.
const Members& session_members();

// Accounts for ids of a claim, and adds up what was pending.
inline void add_pending_counters() {
  if (session.pending_word == nullptr) return;
  session.pending_word->counters.add(session.pending_ids, session.pending_batches,
                                     session.pending_borrowed, session.pending_last_id);
  session.pending_word = nullptr;
  session.pending_ids = session.pending_batches = session.pending_borrowed = 0;
}

inline void account(Shard& word, const Claim& claim, uint64_t batches, uint64_t last_id) {
  if (session.pending_word != &word) {
    add_pending_counters();
    session.pending_word = &word;
  }
  session.pending_ids += claim.count;
  session.pending_batches += batches;
  session.pending_borrowed += claim.borrowed;
  session.pending_last_id = last_id;
}

}  // namespace snowflake::pg
