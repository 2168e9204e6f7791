#include "pg/guards/drop_guard.hpp"

#include "pg/errors/errors_routing.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

constexpr int kNamed = 5;  // the error names at most this many tables

struct Tables {
  StringInfoData names;
  int count;
};

// The snapshot shows the catalogue before the current DROP command, which has already deleted the
// tables.
Snapshot before_the_command() {
  Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
  snapshot->curcid = GetActiveSnapshot()->curcid;
  return snapshot;
}

void record_if_table(Snapshot snapshot, Oid relation, Tables* tables) {
  Relation classes = table_open(RelationRelationId, AccessShareLock);
  ScanKeyData key;
  ScanKeyInit(&key, Anum_pg_class_oid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relation));
  SysScanDesc scan = systable_beginscan(classes, ClassOidIndexId, true, snapshot, 1, &key);
  const HeapTuple tuple = systable_getnext(scan);
  if (HeapTupleIsValid(tuple)) {
    const auto found = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple));
    if (found->relkind == RELKIND_PARTITIONED_TABLE || found->relkind == RELKIND_RELATION) {
      const char* schema = get_namespace_name(found->relnamespace);
      if (++tables->count <= kNamed)
        appendStringInfo(&tables->names, "%s%s", tables->count == 1 ? "" : ", ",
                         quote_qualified_identifier(schema, NameStr(found->relname)));
    }
  }
  systable_endscan(scan);
  table_close(classes, AccessShareLock);
}

template <class Visit>
void for_each_dependent(Relation depends, Snapshot snapshot, Oid catalogue, Oid object,
                        Visit visit) {
  ScanKeyData keys[2];
  ScanKeyInit(&keys[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ,
              ObjectIdGetDatum(catalogue));
  ScanKeyInit(&keys[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ,
              ObjectIdGetDatum(object));
  SysScanDesc scan = systable_beginscan(depends, DependReferenceIndexId, true, snapshot, 2, keys);
  HeapTuple tuple;
  while (HeapTupleIsValid(tuple = systable_getnext(scan)))
    visit(*reinterpret_cast<Form_pg_depend>(GETSTRUCT(tuple)));
  systable_endscan(scan);
}

struct Catalogue {
  Relation depends;
  Snapshot snapshot;
  Oid extension;
};

bool is_member(const Catalogue& catalogue, Oid relation) {
  bool found = false;
  for_each_dependent(catalogue.depends, catalogue.snapshot, ExtensionRelationId,
                     catalogue.extension, [&](const FormData_pg_depend& member) {
                       found |= member.deptype == DEPENDENCY_EXTENSION &&
                                member.classid == RelationRelationId && member.objid == relation;
                     });
  return found;
}

// Finds tables that depend on a member of the extension, but are not members themselves.
void collect_tables(const Catalogue& catalogue, const FormData_pg_depend& member, Tables* tables) {
  if (member.deptype != DEPENDENCY_EXTENSION) return;
  for_each_dependent(catalogue.depends, catalogue.snapshot, member.classid, member.objid,
                     [&](const FormData_pg_depend& dependent) {
                       if (dependent.classid == RelationRelationId && dependent.objsubid == 0 &&
                           dependent.deptype == DEPENDENCY_NORMAL &&
                           !is_member(catalogue, dependent.objid))
                         record_if_table(catalogue.snapshot, dependent.objid, tables);
                     });
}

void refuse_to_drop_tables(Oid extension) {
  const Catalogue catalogue{table_open(DependRelationId, AccessShareLock), before_the_command(),
                            extension};
  Tables tables{};
  initStringInfo(&tables.names);
  for_each_dependent(
      catalogue.depends, catalogue.snapshot, ExtensionRelationId, extension,
      [&](const FormData_pg_depend& member) { collect_tables(catalogue, member, &tables); });
  UnregisterSnapshot(catalogue.snapshot);
  table_close(catalogue.depends, AccessShareLock);
  if (tables.count != 0)
    error_tables_partitioned(tables.names.data, std::max(0, tables.count - kNamed));
}

constinit object_access_hook_type previous_access_hook = nullptr;

void before_drop(ObjectAccessType access, Oid catalogue, Oid object, int part, void* argument) {
  if (previous_access_hook) previous_access_hook(access, catalogue, object, part, argument);
  if (access != OAT_DROP || catalogue != ExtensionRelationId || !ActiveSnapshotSet() ||
      object != get_extension_oid("snowflake", true))
    return;
  refuse_to_drop_tables(object);
}

}  // namespace

void install_drop_guard() {
  previous_access_hook = object_access_hook;
  object_access_hook = before_drop;
}

}  // namespace snowflake::pg
