#include "pg/seal_check.hpp"

#include "core/clock.hpp"
#include "core/seal.hpp"
#include "pg/errors.hpp"
#include "pg/sequence_page.hpp"
#include "pg/settings.hpp"

namespace snowflake::pg {

namespace {

constexpr int64_t kRecheckUs = 1'000'000;

struct Seals {
  int64_t here;
  int64_t dumped;
};

int64_t read_value(Relation relation) {
  SequencePage page = SequencePage::open(relation, BUFFER_LOCK_SHARE);
  const int64_t value = page.value();
  page.close();
  return value;
}

// False where the sequence does not exist any more.
bool read_locked(Oid oid, int64_t* value) {
  Relation relation = try_relation_open(oid, NoLock);
  if (relation != nullptr) {
    *value = read_value(relation);
    relation_close(relation, NoLock);
  }
  UnlockRelationOid(oid, AccessShareLock);
  return relation != nullptr;
}

bool read_sequence(Oid oid, int64_t* value) {
  LockRelationOid(oid, AccessShareLock);
  return read_locked(oid, value);
}

bool try_read_sequence(Oid oid, int64_t* value) {
  return ConditionalLockRelationOid(oid, AccessShareLock) && read_locked(oid, value);
}

bool good(const Seals& seals) {
  const int64_t settings = seal_of(layout);
  return seals.here == settings && seals.dumped == settings;
}

}  // namespace

bool seal_checked_lately(const Slot& slot) {
  const int64_t checked = slot.seal_checked.load(std::memory_order_relaxed);
  return checked != 0 && monotonic_us() - checked < kRecheckUs;
}

void note_seal_checked(Slot& slot) {
  slot.seal_checked.store(monotonic_us(), std::memory_order_relaxed);
}

bool check_seal(const Members& members) {
  Seals seals{};
  if (!read_sequence(members.seal_here, &seals.here) ||
      !read_sequence(members.seal, &seals.dumped)) {
    session.members = Members{};
    return false;
  }
  if (good(seals)) return true;
  if (check(layout_of(seals.here)) != LayoutError::none ||
      check(layout_of(seals.dumped)) != LayoutError::none)
    error_seal_unset();
  if (seals.here != seals.dumped) error_seal_restored(seals.here, seals.dumped);
  error_seal_contradicted(seals.here);
}

bool seal_still_holds(const Members& members) {
  Seals seals{};
  return !try_read_sequence(members.seal_here, &seals.here) ||
         !try_read_sequence(members.seal, &seals.dumped) || good(seals);
}

void require_seal_slowly() {
  if (state == nullptr) error_not_preloaded();
  watch_session();

  // pg_upgrade rebuilds the catalogue first and brings the sequences' values last. What calls us
  // meanwhile, such as a constraint that is weighed against a partition's bound, meets empty
  // tables; all that was ever computed is copied.
  if (IsBinaryUpgrade) {
    session.sealed = true;
    return;
  }

  // Where another backend has just looked, that will do. A standby's slot is never trusted: what it
  // replays does not pass through us.
  Slot* const slot = RecoveryInProgress() ? nullptr : find_slot();
  if (slot == nullptr || !seal_checked_lately(*slot)) {
    Oid mark = InvalidOid;
    for (bool checked = false; !checked;) {
      const Members members = session_members();
      mark = members.high_water;
      checked = check_seal(members);
    }
    // What is noted also says that the slot's mark is the one that belongs to this seal.
    if (slot != nullptr && mark_of(*slot).relation == mark) note_seal_checked(*slot);
  }
  session.sealed = true;
}

}  // namespace snowflake::pg
