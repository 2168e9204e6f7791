#include "pg/mark/fleet_check.hpp"

#include "pg/refuse/errors_lease.hpp"
#include "pg/memory/lease.hpp"
#include "pg/server/sequence_page.hpp"
#include "pg/memory/statistics.hpp"

namespace snowflake::pg {

namespace {

// Nothing has been minted under another fleet.
bool is_open(int64_t remembered) {
  return remembered == 0 || remembered == kUnheardFleet;
}

}  // namespace

bool check_fleet(const StateSequences& sequences) {
  const LOCKMODE mode = leased() ? RowExclusiveLock : AccessShareLock;
  LockRelationOid(sequences.fleet, mode);
  Relation relation = try_relation_open(sequences.fleet, NoLock);
  if (relation == nullptr) {
    UnlockRelationOid(sequences.fleet, mode);
    forget_state_sequences();
    return false;
  }
  const int64_t present = lease_fleet();
  int64_t remembered = SequencePage::read(relation);
  if (is_open(remembered) && leased()) {
    SequencePage page = SequencePage::open(relation, BUFFER_LOCK_EXCLUSIVE);
    remembered = page.value();
    XLogRecPtr lsn = page.lsn();
    if (is_open(remembered)) {
      lsn = page.write(relation, present);
      remembered = present;
    }
    page.close();
    // Before anything is minted: a copy that is taken now must know.
    XLogFlush(lsn);
  }
  relation_close(relation, mode);
  if (remembered == 0 || (leased() && remembered == present)) return true;
  count_refusal(Cause::lease);
  if (!leased()) error_fleet_left(remembered);
  error_other_fleet(remembered, present);
}

}  // namespace snowflake::pg
