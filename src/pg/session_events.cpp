#include "pg/session_events.hpp"

#include "pg/commit_wait.hpp"
#include "pg/high_water.hpp"
#include "pg/lost_marks.hpp"
#include "pg/pending_counters.hpp"
#include "pg/seal_check.hpp"
#include "pg/seal_notice.hpp"
#include "pg/state_sequences.hpp"
#include "pg/statistics.hpp"

namespace snowflake::pg {

namespace {

void on_transaction_end(XactEvent event, void*) {
  switch (event) {
    case XACT_EVENT_PRE_COMMIT:
    case XACT_EVENT_PRE_PREPARE:
      wait_before_commit();
      keep_dropped_mark();
      announce_seal();
      break;
    case XACT_EVENT_COMMIT:
    case XACT_EVENT_PARALLEL_COMMIT:
    case XACT_EVENT_ABORT:
    case XACT_EVENT_PARALLEL_ABORT:
    case XACT_EVENT_PREPARE:
      flush_pending_counters();
      highest_id_of_transaction = 0;
      forget_seal();
      forget_dropped_mark();
      forget_new_seal();
      forget_mark_write();
      break;
    default:
      break;
  }
}

// Somebody dropped, altered or created a relation; InvalidOid stands for any.
void on_relation_change(Datum, Oid relation) {
  const StateSequences known = remembered_state_sequences();
  if (OidIsValid(relation) && relation != hold.mark.relation && relation != known.high_water &&
      relation != known.seal && relation != known.seal_local)
    return;
  forget_hold();
  forget_seal();
  forget_state_sequences();
}

}  // namespace

void watch_session_events() {
  static constinit bool watching = false;
  if (watching) return;
  RegisterXactCallback(on_transaction_end, nullptr);
  CacheRegisterRelcacheCallback(on_relation_change, Datum{0});
  watching = true;
}

}  // namespace snowflake::pg
