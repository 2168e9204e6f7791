#include "pg/checks/clone_check.hpp"

#include "pg/memory/lease_state.hpp"
#include "pg/errors/errors_clone.hpp"
#include "pg/server/sequence_page.hpp"
#include "pg/server/settings.hpp"
#include "pg/server/whereabouts.hpp"

namespace snowflake::pg {

namespace {

Relation open_origin_fingerprint(const StateSequences& sequences, LOCKMODE mode) {
  LockRelationOid(sequences.origin_fingerprint, mode);
  Relation relation = try_relation_open(sequences.origin_fingerprint, NoLock);
  if (relation == nullptr) {
    UnlockRelationOid(sequences.origin_fingerprint, mode);
    reset_state_sequences();
  }
  return relation;
}

// The origin fingerprint is flushed to disk before the first id is returned, so that every later
// clone contains the fingerprint.
void remember(Relation relation) {
  const OriginFingerprint present = present_origin_fingerprint();
  SequencePage page = SequencePage::open(relation, BUFFER_LOCK_EXCLUSIVE);
  const OriginFingerprint remembered = unpack(page.value());
  const OriginFingerprint wanted = merged(remembered, present);
  const XLogRecPtr lsn = wanted == remembered ? page.lsn() : page.write(relation, pack(wanted));
  page.close();
  XLogFlush(lsn);
}

}  // namespace

bool remember_fingerprint(const StateSequences& sequences, Moved* moved) {
  Relation relation = open_origin_fingerprint(sequences, AccessShareLock);
  if (relation == nullptr) return false;
  const OriginFingerprint present = present_origin_fingerprint();
  const OriginFingerprint remembered = unpack(SequencePage::read(relation));
  relation_close(relation, AccessShareLock);
  *moved = leased() ? Moved{} : snowflake::moved(remembered, present);
  if (!moved->any() && merged(remembered, present) != remembered) {
    relation = open_origin_fingerprint(sequences, RowExclusiveLock);
    if (relation == nullptr) return false;
    remember(relation);
    relation_close(relation, RowExclusiveLock);
  }
  // Other sessions read the flag `cloned` before they raise the limit of new ids. The function
  // remember_fingerprint() sets the flag, because attach() raises an error for a clone before it
  // calls record_clone().
  if (moved->any() && refuse_clones()) {
    if (DatabaseState* const state = find_database_state())
      state->cloned.store(true, std::memory_order_relaxed);
  }
  return true;
}

void record_clone(DatabaseState& state, const Moved& moved) {
  if (state.cloned.exchange(moved.any(), std::memory_order_relaxed) == moved.any()) return;
  if (moved.any()) warn_cloned(moved);
}

bool clone_may_mint(const DatabaseState& state) {
  return !refuse_clones() || !state.cloned.load(std::memory_order_relaxed);
}

Moved moved_since(const StateSequences& sequences) {
  Relation relation = leased() ? nullptr : try_relation_open(sequences.origin_fingerprint, NoLock);
  if (relation == nullptr) return {};
  const OriginFingerprint remembered = unpack(SequencePage::read(relation));
  relation_close(relation, NoLock);
  return moved(remembered, present_origin_fingerprint());
}

Moved accept_clone() {
  const StateSequences sequences = current_state_sequences();
  Relation relation = relation_open(sequences.origin_fingerprint, RowExclusiveLock);
  const Moved moved =
      snowflake::moved(unpack(SequencePage::read(relation)), present_origin_fingerprint());
  remember(relation);
  relation_close(relation, RowExclusiveLock);
  if (DatabaseState* const state = find_database_state())
    state->cloned.store(false, std::memory_order_relaxed);
  return moved;
}

}  // namespace snowflake::pg
