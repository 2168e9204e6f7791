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
  if (OidIsValid(relation) && relation != session.mark && relation != m.high_water &&
      relation != m.seal && relation != m.seal_here)
    return;
  session.attached = false;
  session.sealed = false;
  session.members = Members{};
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
    const Members found = find_members();  // may run the callback above
    session.members = found;
  }
  return session.members;
}

}  // namespace snowflake::pg
