#include "pg/session.hpp"

namespace snowflake::pg {

constinit Session session{};

namespace {

void on_transaction_end(XactEvent event, void*) {
  switch (event) {
    case XACT_EVENT_COMMIT:
    case XACT_EVENT_PARALLEL_COMMIT:
    case XACT_EVENT_ABORT:
    case XACT_EVENT_PARALLEL_ABORT:
    case XACT_EVENT_PREPARE:
      add_pending_counters();
      session.sealed = false;
      break;
    default:
      break;
  }
}

// Somebody dropped, altered or created a relation; InvalidOid stands for any.
void on_relation_change(Datum, Oid relation) {
  const Members& m = session.members;
  if (OidIsValid(relation) && relation != m.high_water && relation != m.seal &&
      relation != m.seal_here)
    return;
  session.attached = false;
  session.sealed = false;
  session.members = Members{};
}

// What an earlier session found by membership. A sequence that still exists is still a member: only
// dropping the extension could change that, and drops the sequence too. Spares a session's first call
// the catalogue of dependencies, which costs it more than everything else together.
Members remembered_members() {
  Members known{};
  if (const Slot* const slot = find_slot()) {
    LWLockAcquire(state->lock, LW_SHARED);
    if (slot->database == MyDatabaseId) known = {slot->mark, slot->seal, slot->seal_here};
    LWLockRelease(state->lock);
  }
  for (const Oid oid : {known.high_water, known.seal, known.seal_here})
    if (!OidIsValid(oid) || get_rel_relkind(oid) != RELKIND_SEQUENCE) return Members{};
  return known;
}

}  // namespace

void watch_session() {
  static constinit bool watching = false;
  if (watching) return;
  RegisterXactCallback(on_transaction_end, nullptr);
  CacheRegisterRelcacheCallback(on_relation_change, Datum{0});
  watching = true;
}

const Members& session_members() {
  watch_session();
  if (!session.members.complete()) {
    Members found = remembered_members();  // either may run the callback above
    if (!found.complete()) found = find_members();
    session.members = found;
  }
  return session.members;
}

}  // namespace snowflake::pg
