// validate_empty() marks a foreign key of an empty table as valid without a query. VALIDATE
// CONSTRAINT would run code of the tables' owners with the rights of the current role.

#include "pg/errors/errors_routing.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

// Returns whether the current transaction has created the table and the table has no rows.
bool is_new_and_empty(Oid table) {
  Relation const relation = table_open(table, AccessShareLock);
  const bool is = relation->rd_rel->relkind == RELKIND_RELATION &&
                  relation->rd_createSubid != InvalidSubTransactionId &&
                  RelationGetNumberOfBlocks(relation) == 0;
  table_close(relation, NoLock);
  return is;
}

void mark_valid(Oid key) {
  Relation const constraints = table_open(ConstraintRelationId, RowExclusiveLock);
  const HeapTuple tuple = SearchSysCacheCopy1(CONSTROID, ObjectIdGetDatum(key));
  const auto form = reinterpret_cast<Form_pg_constraint>(GETSTRUCT(tuple));
  if (form->contype == CONSTRAINT_FOREIGN && !form->convalidated) {
    form->convalidated = true;
    CatalogTupleUpdate(constraints, &tuple->t_self, tuple);
    InvokeObjectPostAlterHook(ConstraintRelationId, key, 0);
    CacheInvalidateRelcacheByRelid(form->conrelid);
  }
  table_close(constraints, RowExclusiveLock);
}

}  // namespace

SF_SQL_FUNCTION(validate_empty) {
  const Oid table = PG_GETARG_OID(0);
  const Oid key = get_relation_constraint_oid(table, NameStr(*PG_GETARG_NAME(1)), false);
  if (!owns_relation(table)) aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_TABLE, get_rel_name(table));
  if (!is_new_and_empty(table)) error_table_not_new(get_rel_name(table));
  mark_valid(key);
  PG_RETURN_VOID();
}

}  // namespace snowflake::pg
