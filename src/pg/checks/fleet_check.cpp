#include "pg/checks/fleet_check.hpp"

#include "core/blocker.hpp"
#include "pg/memory/lease_state.hpp"
#include "pg/server/sequence_page.hpp"
#include "pg/memory/statistics.hpp"

namespace snowflake::pg {

namespace {

bool is_open(int64_t remembered) {
  return remembered == 0 || remembered == kUnheardFleet;
}

}  // namespace

bool remember_fleet(const StateSequences& sequences, int64_t* remembered) {
  const LOCKMODE mode = leased() ? RowExclusiveLock : AccessShareLock;
  LockRelationOid(sequences.fleet, mode);
  Relation relation = try_relation_open(sequences.fleet, NoLock);
  if (relation == nullptr) {
    UnlockRelationOid(sequences.fleet, mode);
    reset_state_sequences();
    return false;
  }
  *remembered = SequencePage::read(relation);
  if (is_open(*remembered) && leased()) {
    SequencePage page = SequencePage::open(relation, BUFFER_LOCK_EXCLUSIVE);
    *remembered = page.value();
    XLogRecPtr lsn = page.lsn();
    if (is_open(*remembered)) {
      *remembered = lease_fleet();
      lsn = page.write(relation, *remembered);
    }
    page.close();
    // The identifier of the fleet is flushed to disk before the first id is returned, so that later
    // copies of the data directory contain it.
    XLogFlush(lsn);
  }
  relation_close(relation, mode);
  return true;
}

int64_t remembered_fleet(const StateSequences& sequences) {
  Relation relation = try_relation_open(sequences.fleet, NoLock);
  if (relation == nullptr) return 0;
  const int64_t remembered = SequencePage::read(relation);
  relation_close(relation, NoLock);
  return remembered;
}

bool fleet_still_holds(const StateSequences& sequences) {
  if (!ConditionalLockRelationOid(sequences.fleet, AccessShareLock)) return true;
  const int64_t remembered = remembered_fleet(sequences);
  UnlockRelationOid(sequences.fleet, AccessShareLock);
  return fleet_blocker(leased(), remembered, lease_fleet()) == Blocker::none;
}

}  // namespace snowflake::pg
