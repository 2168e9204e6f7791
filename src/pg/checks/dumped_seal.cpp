// A dump contains the layout of its database's ids as a row of the table snowflake.dumped_seal. A
// trigger compares each row that is inserted into snowflake.dumped_seal with the layout of the
// database. Every role may insert into the table snowflake.dumped_seal. A CHECK constraint compares
// the layouts too, because pg_restore --disable-triggers disables the trigger.
//
// If no id of the database was minted or decoded before, the database takes over the layout of the
// dump. If the database has already minted or decoded ids, restoring a dump with a different layout
// makes every function raise an error. Functions may already have decoded ids of the dump with the
// layout of the database.

#include "core/seal.hpp"
#include "pg/errors/errors.hpp"
#include "pg/checks/seal_check.hpp"
#include "pg/server/sequence_page.hpp"
#include "pg/server/settings.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

// Ownership of a temporary table does not prove that a role may restore dumps, because every role
// may create temporary tables.
bool keeps_restored_rows(const FormData_pg_class& relation) {
  return (relation.relkind == RELKIND_RELATION || relation.relkind == RELKIND_PARTITIONED_TABLE) &&
         relation.relpersistence != RELPERSISTENCE_TEMP;
}

// If a layout in snowflake.dumped_seal differs from the layout of the database, minting stops
// permanently. Only a role that may restore dumps can insert a layout that differs from the layout
// of the database. A role with only INSERT privileges on tables probably belongs to an application,
// so may_have_restored() returns false for the role.
bool may_have_restored() {
  if (may_create_in_database() || has_privs_of_role(GetUserId(), ROLE_PG_WRITE_ALL_DATA))
    return true;
  bool owns_a_table = false;
  Relation classes = table_open(RelationRelationId, AccessShareLock);
  SysScanDesc scan = systable_beginscan(classes, InvalidOid, false, nullptr, 0, nullptr);
  while (HeapTuple tuple = systable_getnext(scan)) {
    const auto relation = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple));
    owns_a_table =
        keeps_restored_rows(*relation) && has_privs_of_role(GetUserId(), relation->relowner);
    if (owns_a_table) break;
  }
  systable_endscan(scan);
  table_close(classes, AccessShareLock);
  return owns_a_table;
}

bool is_row_of_seals(FunctionCallInfo fcinfo) {
  if (!CALLED_AS_TRIGGER(fcinfo)) return false;
  const auto trigger = reinterpret_cast<const TriggerData*>(fcinfo->context);
  if (!TRIGGER_FIRED_BEFORE(trigger->tg_event) || !TRIGGER_FIRED_FOR_ROW(trigger->tg_event) ||
      !TRIGGER_FIRED_BY_INSERT(trigger->tg_event))
    return false;
  const TupleDesc row_type = RelationGetDescr(trigger->tg_relation);
  return row_type->natts > 0 && TupleDescAttr(row_type, 0)->atttypid == INT8OID;
}

// If a layout in snowflake.dumped_seal differs from the layout of the database, the difference is
// recorded durably, even if the transaction is rolled back. Rows that were decoded with the wrong
// layout may already be committed.
void record_contradiction(Oid seal, int64_t presented) {
  Relation sequence = relation_open(seal, RowExclusiveLock);
  SequencePage page = SequencePage::open(sequence, BUFFER_LOCK_EXCLUSIVE);
  const XLogRecPtr written = page.write(sequence, presented);
  page.close();
  XLogFlush(written);
  relation_close(sequence, NoLock);
  // withdraw_limit() makes other sessions check the stored layout (seal) again. The check now
  // fails, because the layout of the restored dump differs.
  if (DatabaseState* state = find_database_state()) withdraw_limit(*state);
  reset_seal();
}

// Writes a layout to a new file of the sequence, so that a rollback restores the old file. REQUIRES
// AccessExclusiveLock on the sequence.
void reseal(Oid oid, int64_t seal) {
  ResetSequence(oid);
  Relation sequence = relation_open(oid, NoLock);
  SequencePage page = SequencePage::open(sequence, BUFFER_LOCK_EXCLUSIVE);
  page.write(sequence, seal);
  page.close();
  relation_close(sequence, NoLock);
}

// Adopts the layout of a dump if no id was minted or decoded and no dump was restored before. The
// function adopt() locks the stored layout until the end of the transaction, so that other sessions
// wait. Only a role that may create schemas in the database can change the layout, because the
// layout applies to all tables.
bool adopt(const StateSequences& sequences, Relation table, int64_t presented) {
  if (RelationGetRelid(table) != sequences.dumped_seal || !may_create_in_database()) return false;
  LockRelationOid(sequences.seal_local, AccessExclusiveLock);
  LockRelationOid(sequences.seal, AccessExclusiveLock);
  Seals seals{};
  if (seal_blocker(sequences, &seals) != Blocker::none || seals.used) return false;
  reseal(sequences.seal_local, presented);
  reseal(sequences.seal, presented);
  SysScanDesc scan = systable_beginscan(table, InvalidOid, false, nullptr, 0, nullptr);
  while (HeapTuple row = systable_getnext(scan)) simple_heap_delete(table, &row->t_self);
  systable_endscan(scan);
  reset_seal();
  use_seal(presented);
  notice_seal_adopted(seals.local);
  return true;
}

// If a dump has the same layout as the database, compare_with_local() records that the layout was
// used, because restored rows may contain ids.
int64_t compare_with_local(const StateSequences& sequences, int64_t presented) {
  Relation local = relation_open(sequences.seal_local, AccessShareLock);
  const int64_t sealed = SequencePage::read(local);
  relation_close(local, AccessShareLock);
  if (presented == sealed && !RecoveryInProgress()) record_seal_use(sequences.seal_local, sealed);
  return sealed;
}

// Returns true if the database adopts the inserted layout, and false if the database already has
// the inserted layout. The argument `table` is null if a CHECK constraint calls the function.
bool compare(const StateSequences& sequences, int64_t presented, Relation table) {
  const int64_t sealed = compare_with_local(sequences, presented);
  if (presented == sealed) return false;
  if (check(layout_of(presented)) != LayoutError::none) error_not_a_seal(presented);
  if (!may_have_restored()) error_may_not_present();
  // The functions present_seal() and is_seal() can also run outside of pg_restore, for example in a
  // read-only transaction.
  if (XactReadOnly || IsInParallelMode()) error_seal_not_recorded();
  if (table != nullptr && adopt(sequences, table, presented)) return true;
  record_contradiction(sequences.seal, presented);
  error_of_seal(Blocker::seal_restored, {sealed, presented});
}

bool has_rows(Relation table) {
  SysScanDesc scan = systable_beginscan(table, InvalidOid, false, nullptr, 0, nullptr);
  const bool found = HeapTupleIsValid(systable_getnext(scan));
  systable_endscan(scan);
  return found;
}

bool would_lose_the_row(FunctionCallInfo fcinfo) {
  if (!CALLED_AS_TRIGGER(fcinfo)) return false;
  const auto trigger = reinterpret_cast<const TriggerData*>(fcinfo->context);
  return !TRIGGER_FIRED_BY_INSERT(trigger->tg_event) &&
         RelationGetRelid(trigger->tg_relation) == current_state_sequences().dumped_seal;
}

}  // namespace

SF_SQL_FUNCTION(present_seal) {
  require_shared_state();
  if (would_lose_the_row(fcinfo)) error_seal_row_stays();
  if (!is_row_of_seals(fcinfo)) error_not_the_seals_trigger();
  const auto trigger = reinterpret_cast<TriggerData*>(fcinfo->context);
  bool is_null = false;
  const int64_t presented = DatumGetInt64(
      heap_getattr(trigger->tg_trigtuple, 1, RelationGetDescr(trigger->tg_relation), &is_null));
  if (is_null) return Datum{0};

  const StateSequences sequences = current_state_sequences();
  // The inserted row is stored only if compare() has adopted its id layout, or if the table
  // snowflake.dumped_seal is empty.
  if (compare(sequences, presented, trigger->tg_relation) ||
      (RelationGetRelid(trigger->tg_relation) == sequences.dumped_seal &&
       !has_rows(trigger->tg_relation)))
    return PointerGetDatum(trigger->tg_trigtuple);
  return Datum{0};
}

SF_SQL_FUNCTION(is_seal) {
  require_shared_state();
  compare(current_state_sequences(), PG_GETARG_INT64(0), nullptr);
  PG_RETURN_BOOL(true);
}

}  // namespace snowflake::pg
