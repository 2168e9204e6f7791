#include "pg/server/database_settings.hpp"

namespace snowflake::pg {

namespace {

// Searches an array of "name=value" for a setting, and returns null if the setting is missing.
const char* value_in(ArrayType* settings, const char* name) {
  Datum* elements = nullptr;
  int count = 0;
  deconstruct_array(settings, TEXTOID, -1, false, TYPALIGN_INT, &elements, nullptr, &count);
  const size_t length = strlen(name);
  for (int i = 0; i < count; ++i) {
    const char* const setting = TextDatumGetCString(elements[i]);
    if (pg_strncasecmp(setting, name, length) == 0 && setting[length] == '=')
      return setting + length + 1;
  }
  return nullptr;
}

}  // namespace

void for_each_database_setting(const char* name,
                               void (*visit)(Oid database, const char* value, void* argument),
                               void* argument) {
  Relation const settings = table_open(DbRoleSettingRelationId, AccessShareLock);
  ScanKeyData key;
  ScanKeyInit(&key, Anum_pg_db_role_setting_setrole, BTEqualStrategyNumber, F_OIDEQ,
              ObjectIdGetDatum(InvalidOid));
  SysScanDesc scan = systable_beginscan(settings, InvalidOid, false, nullptr, 1, &key);
  while (HeapTuple row = systable_getnext(scan)) {
    const auto form = reinterpret_cast<Form_pg_db_role_setting>(GETSTRUCT(row));
    bool null = false;
    const Datum config =
        heap_getattr(row, Anum_pg_db_role_setting_setconfig, RelationGetDescr(settings), &null);
    const char* const value = null ? nullptr : value_in(DatumGetArrayTypeP(config), name);
    if (value != nullptr) visit(form->setdatabase, value, argument);
  }
  systable_endscan(scan);
  table_close(settings, AccessShareLock);
}

}  // namespace snowflake::pg
