// A dump presents its seal as a row of the table snowflake.dumped_seal, which anybody who restores
// can insert, whoever owns the extension. The row is compared, not kept.

#include "core/seal.hpp"
#include "pg/errors.hpp"
#include "pg/seal_check.hpp"
#include "pg/sequence_page.hpp"
#include "pg/settings.hpp"
#include "pg/postgres.hpp"

namespace snowflake::pg {

namespace {

// Whoever can have restored rows: a contradiction stops the database for good, so it is not for
// everybody to present one.
bool may_have_restored() {
  if (may_create_in_database()) return true;
  Relation classes = table_open(RelationRelationId, AccessShareLock);
  ScanKeyData key;
  ScanKeyInit(&key, Anum_pg_class_relowner, BTEqualStrategyNumber, F_OIDEQ,
              ObjectIdGetDatum(GetUserId()));
  SysScanDesc scan = systable_beginscan(classes, InvalidOid, false, nullptr, 1, &key);
  const bool owns_something = HeapTupleIsValid(systable_getnext(scan));
  systable_endscan(scan);
  table_close(classes, AccessShareLock);
  return owns_something;
}

// Durable at once and not undone by a rollback, as setval() is: the rows that were decoded wrongly
// may be committed already.
void record_contradiction(Oid seal, int64_t presented) {
  Relation sequence = relation_open(seal, RowExclusiveLock);
  SequencePage page = SequencePage::open(sequence, BUFFER_LOCK_EXCLUSIVE);
  const XLogRecPtr written = page.write(sequence, presented);
  page.close();
  XLogFlush(written);
  relation_close(sequence, NoLock);
  // Nobody mints or decodes on what was found good before.
  if (DatabaseState* state = find_database_state()) withdraw_limit(*state);
  forget_seal();
}

}  // namespace

SF_SQL_FUNCTION(present_seal) {
  if (shared_state == nullptr) error_not_preloaded();
  if (!CALLED_AS_TRIGGER(fcinfo)) elog(ERROR, "present_seal() was not called by its trigger");
  const auto trigger = reinterpret_cast<TriggerData*>(fcinfo->context);
  bool is_null = false;
  const int64_t presented = DatumGetInt64(
      heap_getattr(trigger->tg_trigtuple, 1, RelationGetDescr(trigger->tg_relation), &is_null));
  if (is_null) return PointerGetDatum(nullptr);

  const StateSequences sequences = current_state_sequences();
  Relation local = relation_open(sequences.seal_local, AccessShareLock);
  const int64_t sealed = SequencePage::read(local);
  relation_close(local, AccessShareLock);
  if (presented == sealed) return PointerGetDatum(nullptr);

  if (check(layout_of(presented)) != LayoutError::none) error_not_a_seal(presented);
  if (!may_have_restored()) error_may_not_present();
  record_contradiction(sequences.seal, presented);
  error_seal_restored(sealed, presented);
}

}  // namespace snowflake::pg
