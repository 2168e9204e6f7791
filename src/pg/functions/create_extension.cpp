#include "pg/functions/create_extension.hpp"

#include "core/clock.hpp"
#include "core/clock_base.hpp"
#include "core/origin_fingerprint.hpp"
#include "core/seal.hpp"
#include "pg/checks/seal_check.hpp"
#include "pg/clock/clock_watch.hpp"
#include "pg/clock/synchronization.hpp"
#include "pg/server/datum.hpp"
#include "pg/errors/errors.hpp"
#include "pg/memory/database_state.hpp"
#include "pg/memory/lease_state.hpp"
#include "pg/mark/lost_marks.hpp"
#include "pg/server/sequence_page.hpp"
#include "pg/server/session_events.hpp"
#include "pg/memory/postmaster_memory.hpp"
#include "pg/server/settings.hpp"
#include "pg/server/whereabouts.hpp"
#include "pg/memory/shared_state.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

bool has_subscription() {
  Relation subscriptions = table_open(SubscriptionRelationId, AccessShareLock);
  SysScanDesc scan = systable_beginscan(subscriptions, InvalidOid, false, nullptr, 0, nullptr);
  const bool found = HeapTupleIsValid(systable_getnext(scan));
  systable_endscan(scan);
  table_close(subscriptions, AccessShareLock);
  return found;
}

// Returns the reason why other servers may have the same tables, for example a subscription, or
// null.
const char* sign_of_others() {
  if (citus_preloaded) return "Citus is preloaded";
  if (has_subscription()) return "a subscription exists";
  return nullptr;
}

// PostgreSQL suppresses notices of an extension's script, so the notice about the new layout is
// sent at the commit.
constinit bool seal_is_new = false;

void report_seal_at_commit() {
  install_session_events();
  seal_is_new = true;
}

}  // namespace

void report_seal() {
  if (!seal_is_new || !OidIsValid(get_extension_oid("snowflake", true))) return;
  const OriginInUse origin = origin_in_use();
  notice_sealed(origin.region, origin.shards);
}

void reset_new_seal() {
  seal_is_new = false;
}

// Returns the initial values of four sequences: the layout of ids, the high-water mark, the fleet
// number, and the fingerprint of the server. CREATE EXTENSION stores the four values before the
// first id is minted, so that every later clone of the server contains the values.
SF_SQL_FUNCTION(initial_state) {
  require_shared_state();
  const int64_t clock_ms = wall_clock_ms();
  use_seal(seal_of(chosen_layout()));
  if (clock_ms < layout.epoch_ms) error_clock_before_epoch(clock_ms);
  if (layout.tick_at(clock_ms) > layout.last_minted_tick()) error_exhausted_unsealed();
  check_clock();
  if (clock_jumped_ahead()) error_clock_jumped(clock_drift_us() / 1000);
  WaitBudget budget;
  while (lacks_synchronization()) wait_for_synchronization(budget);
  // CREATE EXTENSION always commits synchronously, because sessions may return ids below the new
  // high-water mark before the next flush of WAL.
  ForceSyncCommit();

  report_seal_at_commit();
  if (origin_in_use().is_default()) {
    if (const char* sign = sign_of_others()) warn_may_meet_others(sign);
  }
  Datum values[4] = {
      Int64GetDatum(seal_of(layout)), Int64GetDatum(std::max(clock_ms, lost_mark_ms())),
      Int64GetDatum(fleet_to_remember()), Int64GetDatum(pack(present_origin_fingerprint()))};
  bool nulls[4] = {};
  PG_RETURN_DATUM(row_datum(fcinfo, values, nulls));
}

// Writes a value to a sequence in the same way as a high-water mark, and returns the old value. The
// script of CREATE EXTENSION checks that SQL can read the value that check_sequence_page() has
// written.
SF_SQL_FUNCTION(check_sequence_page) {
  require_shared_state();
  Relation sequence = relation_open(PG_GETARG_OID(0), RowExclusiveLock);
  SequencePage page = SequencePage::open(sequence, BUFFER_LOCK_EXCLUSIVE);
  const int64_t before = page.mark();
  page.write_mark(sequence, PG_GETARG_INT64(1));
  page.close();
  relation_close(sequence, NoLock);
  PG_RETURN_INT64(before);
}

}  // namespace snowflake::pg
