#include "pg/checks/read_only.hpp"

#include <optional>

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

constexpr char kName[] = "default_transaction_read_only";

// The value in an array of "name=value".
std::optional<bool> value_in(ArrayType* settings) {
  std::optional<bool> found;
  Datum* elements = nullptr;
  int count = 0;
  deconstruct_array(settings, TEXTOID, -1, false, TYPALIGN_INT, &elements, nullptr, &count);
  for (int i = 0; i < count; ++i) {
    const char* setting = TextDatumGetCString(elements[i]);
    constexpr size_t kLength = sizeof kName - 1;
    bool value = false;
    if (strncmp(setting, kName, kLength) == 0 && setting[kLength] == '=' &&
        parse_bool(setting + kLength + 1, &value))
      found = value;
  }
  return found;
}

// Returns the settings of ALTER DATABASE, or those of ALTER ROLE ALL if `database` is InvalidOid.
std::optional<bool> set_for_all_roles(Oid database) {
  std::optional<bool> found;
  Relation const settings = table_open(DbRoleSettingRelationId, AccessShareLock);
  ScanKeyData key[2];
  ScanKeyInit(&key[0], Anum_pg_db_role_setting_setdatabase, BTEqualStrategyNumber, F_OIDEQ,
              ObjectIdGetDatum(database));
  ScanKeyInit(&key[1], Anum_pg_db_role_setting_setrole, BTEqualStrategyNumber, F_OIDEQ,
              ObjectIdGetDatum(InvalidOid));
  SysScanDesc scan =
      systable_beginscan(settings, DbRoleSettingDatidRolidIndexId, true, nullptr, 2, key);
  if (const HeapTuple row = systable_getnext(scan); HeapTupleIsValid(row)) {
    bool null = false;
    const Datum config =
        heap_getattr(row, Anum_pg_db_role_setting_setconfig, RelationGetDescr(settings), &null);
    if (!null) found = value_in(DatumGetArrayTypeP(config));
  }
  systable_endscan(scan);
  table_close(settings, AccessShareLock);
  return found;
}

}  // namespace

bool is_read_only_by_default() {
  if (const auto on = set_for_all_roles(MyDatabaseId)) return *on;
  if (const auto on = set_for_all_roles(InvalidOid)) return *on;
  return is_on_for_all(kName, PGC_S_ARGV);
}

}  // namespace snowflake::pg
