#include "pg/checks/seal_check.hpp"

#include "core/clock.hpp"
#include "core/seal.hpp"
#include "pg/errors/errors.hpp"
#include "pg/memory/mark_hold.hpp"
#include "pg/server/sequence_page.hpp"
#include "pg/server/session_events.hpp"
#include "pg/server/settings.hpp"

namespace snowflake::pg {

constinit bool seal_is_good = false;

namespace {

constexpr int64_t kRecheckUs = 1'000'000;

// Reads a sequence, and returns false if DROP EXTENSION has removed the sequence. The argument
// `of_local` receives the members `used` and `uncommitted`, and is null for all sequences except
// snowflake.seal_local.
bool read_locked(Oid oid, int64_t* value, Seals* of_local = nullptr) {
  Relation relation = try_relation_open(oid, NoLock);
  if (relation != nullptr) {
    SequencePage page = SequencePage::open(relation, BUFFER_LOCK_SHARE);
    *value = page.value();
    if (of_local != nullptr) of_local->used = page.is_called();
    page.close();
    if (of_local != nullptr) of_local->uncommitted = storage_is_uncommitted(relation);
    relation_close(relation, NoLock);
  }
  UnlockRelationOid(oid, AccessShareLock);
  return relation != nullptr;
}

bool read_sequence(Oid oid, int64_t* value, Seals* of_local = nullptr) {
  LockRelationOid(oid, AccessShareLock);
  return read_locked(oid, value, of_local);
}

bool try_read_sequence(Oid oid, int64_t* value) {
  return ConditionalLockRelationOid(oid, AccessShareLock) && read_locked(oid, value);
}

// Returns the number of the id layout in the table snowflake.dumped_seal, or 0 if the table is
// empty. Every dump of the database contains the table snowflake.dumped_seal. If
// snowflake.dumped_seal has several rows, carried_seal() returns the first layout that differs from
// `local`, the layout of the database. If another session has locked snowflake.dumped_seal,
// carried_seal() returns `local` without waiting, so that the lock causes no error.
int64_t carried_seal(Oid table, int64_t local) {
  if (!ConditionalLockRelationOid(table, AccessShareLock)) return local;
  Relation relation = try_relation_open(table, NoLock);
  int64_t carried = relation == nullptr ? local : 0;
  if (relation != nullptr) {
    SysScanDesc scan = systable_beginscan(relation, InvalidOid, false, nullptr, 0, nullptr);
    while (HeapTuple row = systable_getnext(scan)) {
      bool null = false;
      const Datum seal = heap_getattr(row, 1, RelationGetDescr(relation), &null);
      if (carried == 0 || carried == local) carried = null ? -1 : DatumGetInt64(seal);
    }
    systable_endscan(scan);
    relation_close(relation, NoLock);
  }
  UnlockRelationOid(table, AccessShareLock);
  return carried;
}

// The acquire load pairs with the release stores in record_all_checked() and record_seal_checked().
// A session that relies on a check by another session must also see every value that was written
// before the check.
bool is_of_late(const std::atomic<int64_t>& checked_us) {
  const int64_t checked = checked_us.load(std::memory_order_acquire);
  return checked != 0 && monotonic_us() - checked < kRecheckUs;
}

bool good(const Seals& seals) {
  return seals.local == seals.dumped && check(layout_of(seals.local)) == LayoutError::none;
}

bool is_of_session(const Seals& seals) {
  const int64_t session = seal_of(layout);
  return seals.local == session && seals.dumped == session;
}

// Returns false without calling `read` if another session has locked a sequence.
template <class Read>
bool with_seal_locked(const StateSequences& sequences, LOCKMODE mode, Read read) {
  if (!ConditionalLockRelationOid(sequences.seal_local, mode)) return false;
  const bool readable = ConditionalLockRelationOid(sequences.seal, AccessShareLock);
  const bool result = readable && read();
  if (readable) UnlockRelationOid(sequences.seal, AccessShareLock);
  UnlockRelationOid(sequences.seal_local, mode);
  return result;
}

}  // namespace

bool seal_checked_lately(const DatabaseState& state) {
  return is_of_late(state.seal_checked_us);
}

bool go_by_checked_seal(const DatabaseState& state) {
  if (!seal_checked_lately(state)) return false;
  // The extension may have been dropped and created again with another layout since another session
  // checked the layout.
  if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(mark_of(state).relation))) return false;
  // Another session may have replaced the shared state of the database while this session looked up
  // the relation.
  if (!seal_checked_lately(state)) return false;
  use_seal(state.seal);
  return true;
}

bool all_checked_lately(const DatabaseState& state) {
  return seal_checked_lately(state) && is_of_late(state.fleet_checked_us);
}

void record_all_checked(DatabaseState& state, const Seals& seals) {
  record_seal_checked(state, seals);
  state.fleet_checked_us.store(monotonic_us(), std::memory_order_release);
}

void record_seal_checked(DatabaseState& state, const Seals& seals) {
  if (!seals.uncommitted && is_of_session_layout(state))
    state.seal_checked_us.store(monotonic_us(), std::memory_order_release);
}

void use_seal(int64_t seal) {
  const Layout sealed = layout_of(seal);
  if (sealed == layout) return;
  reset_hold();
  use_layout(sealed);
}

Blocker seal_blocker(const StateSequences& sequences, Seals* seals) {
  if (!read_sequence(sequences.seal_local, &seals->local, seals) ||
      !read_sequence(sequences.seal, &seals->dumped)) {
    reset_state_sequences();
    return Blocker::seal_gone;
  }
  if (good(*seals)) {
    const int64_t carried = carried_seal(sequences.dumped_seal, seals->local);
    if (carried == seals->local) {
      use_seal(seals->local);
      return Blocker::none;
    }
    if (carried == 0) return Blocker::seal_not_carried;
    seals->dumped = carried;
  }
  if (check(layout_of(seals->local)) != LayoutError::none ||
      check(layout_of(seals->dumped)) != LayoutError::none)
    return Blocker::seal_unset;
  return Blocker::seal_restored;
}

bool record_seal_use(Oid seal_local, int64_t seal) {
  Relation relation = try_relation_open(seal_local, RowExclusiveLock);
  if (relation == nullptr) return false;
  SequencePage page = SequencePage::open(relation, BUFFER_LOCK_EXCLUSIVE);
  const bool same = page.value() == seal;
  if (same && !page.is_called()) page.write(relation, seal);
  page.close();
  relation_close(relation, RowExclusiveLock);
  return same;
}

Blocker check_seal_for_use(const StateSequences& sequences, Seals* seals) {
  const Blocker fault = seal_blocker(sequences, seals);
  if (fault != Blocker::none || seals->used || RecoveryInProgress()) return fault;
  return record_seal_use(sequences.seal_local, seals->local) ? fault : Blocker::seal_gone;
}

bool try_go_by_seal() {
  const StateSequences sequences = present_state_sequences();
  Seals seals{};
  return sequences.complete() && with_seal_locked(sequences, AccessShareLock, [&] {
           return seal_blocker(sequences, &seals) == Blocker::none;
         });
}

bool seal_still_holds(const StateSequences& sequences) {
  Seals seals{};
  return !try_read_sequence(sequences.seal_local, &seals.local) ||
         !try_read_sequence(sequences.seal, &seals.dumped) || is_of_session(seals);
}

void require_seal_slowly(SealUse use) {
  require_shared_state();
  install_session_events();

  // pg_upgrade rebuilds the catalogue first, and restores the sequences' values last. Before
  // pg_upgrade restores the sequences, no stored layout (seal) is valid. During pg_upgrade,
  // functions of the extension may run, for example when ATTACH PARTITION compares CHECK
  // constraints. During pg_upgrade, no function needs the stored layout, because pg_upgrade fills
  // no table and computes no column.
  if (IsBinaryUpgrade) {
    seal_is_good = true;
    return;
  }

  // On a standby, each session checks the stored layout itself. WAL replay can change the stored
  // layout, but does not reset seal_checked_us, the time of the last check.
  DatabaseState* const state = RecoveryInProgress() ? nullptr : find_database_state();
  if (state == nullptr || !go_by_checked_seal(*state)) {
    Oid mark = InvalidOid;
    Blocker fault = Blocker::seal_gone;
    Seals seals{};
    while (fault == Blocker::seal_gone) {
      const StateSequences sequences = known_state_sequences();
      mark = sequences.high_water;
      fault = use == SealUse::ids ? check_seal_for_use(sequences, &seals)
                                  : seal_blocker(sequences, &seals);
    }
    if (fault != Blocker::none) error_of_seal(fault, seals);
    if (use != SealUse::ids) return;
    // If the extension was dropped and created again, the shared state may still contain the OID of
    // the old sequence snowflake.high_water. The session records its check of the layout only if
    // the shared state contains the OID of the current sequence snowflake.high_water.
    if (state != nullptr && mark_of(*state).relation == mark) record_seal_checked(*state, seals);
  }
  seal_is_good = true;
}

bool try_require_seal() {
  if (seal_is_good) return true;
  require_shared_state();
  install_session_events();
  const DatabaseState* const state = RecoveryInProgress() ? nullptr : find_database_state();
  if (state != nullptr && seal_checked_lately(*state)) {
    require_seal_slowly();
    return true;
  }
  // A request for RowExclusiveLock does not wait if the session already holds the lock.
  return with_seal_locked(known_state_sequences(), RowExclusiveLock, [] {
    require_seal_slowly();
    return true;
  });
}

}  // namespace snowflake::pg
