#include "pg/checks/state_sequences.hpp"

#include "pg/errors/errors.hpp"
#include "pg/server/session_events.hpp"

namespace snowflake::pg {

namespace {

constinit StateSequences known{};

// A rollback cannot restore a row that was inserted and deleted by the same subtransaction.
bool may_come_back(HeapTupleHeader row) {
  if ((row->t_infomask & HEAP_XMAX_INVALID) || HEAP_XMAX_IS_LOCKED_ONLY(row->t_infomask))
    return false;
  const TransactionId dropper = HeapTupleHeaderGetUpdateXid(row);
  return TransactionIdIsCurrentTransactionId(dropper) && dropper != HeapTupleHeaderGetXmin(row);
}

bool is_state(char relkind) {
  return relkind == RELKIND_SEQUENCE || relkind == RELKIND_RELATION;
}

StateSequences find_state_sequences(Oid extension) {
  StateSequences found{};
  found.installed = true;
  Relation depend = table_open(DependRelationId, AccessShareLock);
  ScanKeyData key[2];
  ScanKeyInit(&key[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ,
              ObjectIdGetDatum(ExtensionRelationId));
  ScanKeyInit(&key[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ,
              ObjectIdGetDatum(extension));
  SysScanDesc scan = systable_beginscan(depend, DependReferenceIndexId, true, nullptr, 2, key);
  while (HeapTuple tuple = systable_getnext(scan)) {
    const auto entry = reinterpret_cast<Form_pg_depend>(GETSTRUCT(tuple));
    if (entry->deptype != DEPENDENCY_EXTENSION || entry->classid != RelationRelationId ||
        !is_state(get_rel_relkind(entry->objid)))
      continue;
    const char* name = get_rel_name(entry->objid);
    if (name == nullptr) continue;
    if (strcmp(name, "high_water") == 0) found.high_water = entry->objid;
    if (strcmp(name, "seal") == 0) found.seal = entry->objid;
    if (strcmp(name, "seal_local") == 0) found.seal_local = entry->objid;
    if (strcmp(name, "fleet") == 0) found.fleet = entry->objid;
    if (strcmp(name, "origin_fingerprint") == 0) found.origin_fingerprint = entry->objid;
    if (strcmp(name, "dumped_seal") == 0) found.dumped_seal = entry->objid;
    if (strcmp(name, "backfills") == 0) found.backfills = entry->objid;
    if (strcmp(name, "late_ids") == 0) found.late_ids = entry->objid;
  }
  systable_endscan(scan);
  table_close(depend, AccessShareLock);
  return found;
}

}  // namespace

StateSequences known_state_sequences() {
  return known.complete() ? known : current_state_sequences();
}

StateSequences current_state_sequences() {
  install_session_events();
  const StateSequences found = present_state_sequences();
  if (const Blocker blocker = found.blocker(); blocker != Blocker::none) error_of_state(blocker);
  known = found;
  return found;
}

StateSequences present_state_sequences() {
  const Oid extension = get_extension_oid("snowflake", true);
  return OidIsValid(extension) ? find_state_sequences(extension) : StateSequences{};
}

StateSequences remembered_state_sequences() {
  return known;
}

void reset_state_sequences() {
  known = StateSequences{};
}

// dropped_in_this_transaction() also reads rows of pg_extension that this transaction has deleted,
// because a rollback would restore the rows.
bool dropped_in_this_transaction() {
  Relation extensions = table_open(ExtensionRelationId, AccessShareLock);
  ScanKeyData key;
  ScanKeyInit(&key, Anum_pg_extension_extname, BTEqualStrategyNumber, F_NAMEEQ,
              CStringGetDatum("snowflake"));
  SysScanDesc scan =
      systable_beginscan(extensions, ExtensionNameIndexId, true, SnapshotAny, 1, &key);
  bool dropped = false;
  while (HeapTuple tuple = systable_getnext(scan)) dropped |= may_come_back(tuple->t_data);
  systable_endscan(scan);
  table_close(extensions, AccessShareLock);
  return dropped;
}

}  // namespace snowflake::pg
