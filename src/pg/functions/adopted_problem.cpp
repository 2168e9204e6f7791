#include "pg/functions/adopted_problem.hpp"

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

constexpr const char* kProblems =
    "SELECT relation, attribute, problem FROM snowflake.adopted_columns()"
    " WHERE problem IS NOT NULL ORDER BY 1, 2";

// Locks the table snowflake.adopted without waiting, so that the query on the table does not wait
// for a lock. Returns InvalidOid if the table is locked, missing or empty.
Oid lock_adopted() {
  const Oid schema = get_namespace_oid("snowflake", true);
  const Oid table = OidIsValid(schema) ? get_relname_relid("adopted", schema) : InvalidOid;
  if (!OidIsValid(table) || !ConditionalLockRelationOid(table, AccessShareLock)) return InvalidOid;
  Relation const relation = try_relation_open(table, NoLock);
  if (relation == nullptr) return InvalidOid;
  const bool empty = RelationGetNumberOfBlocks(relation) == 0;
  relation_close(relation, NoLock);
  return empty ? InvalidOid : table;
}

Oid owner_of(Oid relation) {
  const HeapTuple row = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
  if (!HeapTupleIsValid(row)) return InvalidOid;
  const Oid owner = reinterpret_cast<Form_pg_class>(GETSTRUCT(row))->relowner;
  ReleaseSysCache(row);
  return owner;
}

const char* first_problem() {
  if (SPI_execute(kProblems, true, 0) != SPI_OK_SELECT || SPI_processed == 0) return nullptr;
  const auto value = [](int column) {
    return SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, column);
  };
  const char* more = SPI_processed == 1 ? "" : psprintf(", and %llu more", SPI_processed - 1ULL);
  return psprintf("adopted column %s.%s: %s%s", value(1), value(2), value(3), more);
}

}  // namespace

const char* adopted_problem() {
  const Oid table = lock_adopted();
  if (!OidIsValid(table)) return nullptr;
  // The query runs as the owner of snowflake.adopted, because other roles have no privileges on the
  // table.
  Oid user = InvalidOid;
  int context = 0;
  GetUserIdAndSecContext(&user, &context);
  SetUserIdAndSecContext(owner_of(table), context | SECURITY_RESTRICTED_OPERATION);
  const MemoryContext caller = CurrentMemoryContext;
  SPI_connect();
  const char* problem = first_problem();
  if (problem != nullptr) problem = MemoryContextStrdup(caller, problem);
  SPI_finish();
  SetUserIdAndSecContext(user, context);
  return problem;
}

}  // namespace snowflake::pg
