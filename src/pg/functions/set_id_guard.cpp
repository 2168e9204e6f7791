// CREATE TRIGGER does not call the trigger function, so set_id() cannot check its arguments. A hook
// checks the arguments of set_id() in each new row of pg_trigger, including the rows for
// partitions.
#include "pg/functions/set_id_guard.hpp"

#include "pg/errors/errors_routing.hpp"
#include "pg/functions/set_id.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

bool is_set_id(Oid function) {
  const char* const name = get_func_name(function);
  return name != nullptr && strcmp(name, "set_id") == 0 &&
         getExtensionOfObject(ProcedureRelationId, function) ==
             get_extension_oid("snowflake", true);
}

// pg_trigger.tgargs stores the arguments one after another, each with a zero byte at the end.
void check(Relation triggers, HeapTuple row) {
  const auto& trigger = *reinterpret_cast<Form_pg_trigger>(GETSTRUCT(row));
  if (!is_set_id(trigger.tgfoid)) return;
  if (!TRIGGER_FOR_BEFORE(trigger.tgtype) || !TRIGGER_FOR_ROW(trigger.tgtype) ||
      (trigger.tgtype & TRIGGER_TYPE_EVENT_MASK) != TRIGGER_TYPE_INSERT)
    error_not_an_insert_trigger();
  bool null = false;
  const Datum stored = heap_getattr(row, Anum_pg_trigger_tgargs, RelationGetDescr(triggers), &null);
  const int count = trigger.tgnargs;
  const auto arguments =
      static_cast<const char**>(palloc(sizeof(char*) * static_cast<Size>(count + 1)));
  if (count > 0) {
    const char* next = VARDATA_ANY(DatumGetByteaPP(stored));
    for (int i = 0; i < count; next += strlen(next) + 1) arguments[i++] = next;
  }
  Relation relation = relation_open(trigger.tgrelid, NoLock);  // the table is already locked
  check_set_id(arguments, count, relation);
  relation_close(relation, NoLock);
}

void check_trigger(Oid trigger) {
  Relation triggers = table_open(TriggerRelationId, AccessShareLock);
  ScanKeyData key;
  ScanKeyInit(&key, Anum_pg_trigger_oid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(trigger));
  // SnapshotSelf shows the row that the current command has inserted into pg_trigger.
  SysScanDesc scan = systable_beginscan(triggers, TriggerOidIndexId, true, SnapshotSelf, 1, &key);
  const HeapTuple row = systable_getnext(scan);
  if (HeapTupleIsValid(row)) check(triggers, row);
  systable_endscan(scan);
  table_close(triggers, AccessShareLock);
}

constinit object_access_hook_type previous_access_hook = nullptr;

void after_create(ObjectAccessType access, Oid catalogue, Oid object, int part, void* argument) {
  if (previous_access_hook) previous_access_hook(access, catalogue, object, part, argument);
  if (access == OAT_POST_CREATE && catalogue == TriggerRelationId) check_trigger(object);
}

}  // namespace

void install_set_id_guard() {
  previous_access_hook = object_access_hook;
  object_access_hook = after_create;
}

}  // namespace snowflake::pg
