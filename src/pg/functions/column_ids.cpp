// Reads a column of a table without a query, so that no function of the table's owner runs. To plan
// a query, PostgreSQL evaluates index predicates, CHECK constraints and policies, which can call
// functions.

#include "pg/functions/column_ids.hpp"

#include "pg/functions/run_as.hpp"
#include "pg/errors/errors_routing.hpp"

namespace snowflake::pg {

namespace {

struct Column {
  Relation relation;
  AttrNumber number;
  Oid type;
};

const char* name_of(Relation relation) {
  return RelationGetRelationName(relation);
}

Column column_of(Relation relation, const char* name) {
  const AttrNumber number = get_attnum(RelationGetRelid(relation), name);
  if (number <= 0) error_holds_no_integers(name_of(relation), name);
  const FormData_pg_attribute& attribute = *TupleDescAttr(RelationGetDescr(relation), number - 1);
  return {relation, number, is_computed(attribute) ? InvalidOid : getBaseType(attribute.atttypid)};
}

int64 integer_of(Oid type, Datum value) {
  switch (type) {
    case INT2OID:
      return DatumGetInt16(value);
    case INT4OID:
      return DatumGetInt32(value);
    default:
      return DatumGetInt64(value);
  }
}

Oid integers_ascending(Oid type) {
  switch (type) {
    case INT2OID:
      return INT2_BTREE_OPS_OID;
    case INT4OID:
      return INT4_BTREE_OPS_OID;
    case INT8OID:
      return INT8_BTREE_OPS_OID;
    default:
      return InvalidOid;
  }
}

// Raises the privilege errors that a query of the caller would raise.
void check_may_read(Oid relation, const char* column) {
  const HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
  if (!HeapTupleIsValid(tuple)) error_relation_gone(relation);
  const FormData_pg_class form = *reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple));
  ReleaseSysCache(tuple);
  if (!may_use_schema(form.relnamespace))
    aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_SCHEMA, get_namespace_name(form.relnamespace));
  const AttrNumber number = get_attnum(relation, column);
  if (pg_class_aclcheck(relation, GetUserId(), ACL_SELECT) != ACLCHECK_OK &&
      (number <= 0 ||
       pg_attribute_aclcheck(relation, number, GetUserId(), ACL_SELECT) != ACLCHECK_OK))
    aclcheck_error(ACLCHECK_NO_PRIV, get_relkind_objtype(form.relkind), NameStr(form.relname));
  // The calling SQL functions set row_security to off, so policies that hide rows raise an error.
  check_enable_rls(relation, InvalidOid, false);
}

template <class Next>
void visit_rows(const Column& column, Next next, Visit visit, void* state) {
  TupleTableSlot* const slot = table_slot_create(column.relation, nullptr);
  while (next(slot)) {
    CHECK_FOR_INTERRUPTS();
    bool null = false;
    const Datum value = slot_getattr(slot, column.number, &null);
    visit(state, null ? 0 : integer_of(column.type, value), null);
  }
  ExecDropSingleTupleTableSlot(slot);
}

void scan(const Column& column, Visit visit, void* state) {
  TableScanDesc const rows = begin_scan(column.relation, GetActiveSnapshot());
  visit_rows(
      column,
      [&](TupleTableSlot* slot) {
        return table_scan_getnextslot(rows, ForwardScanDirection, slot);
      },
      visit, state);
  table_endscan(rows);
}

void scan_block(const Column& column, BlockNumber block, Visit visit, void* state) {
  ItemPointerData first;
  ItemPointerData last;
  ItemPointerSet(&first, block, FirstOffsetNumber);
  ItemPointerSet(&last, block, MaxOffsetNumber);
  TableScanDesc const rows = begin_range_scan(column.relation, GetActiveSnapshot(), &first, &last);
  visit_rows(
      column,
      [&](TupleTableSlot* slot) {
        return table_scan_getnextslot_tidrange(rows, ForwardScanDirection, slot);
      },
      visit, state);
  table_endscan(rows);
}

// If the table access method cannot read single blocks, the whole table is read.
void scan_share(const Column& column, double sample, Visit visit, void* state) {
  if (sample >= 100 || column.relation->rd_tableam->scan_set_tidrange == nullptr)
    return scan(column, visit, state);
  const BlockNumber blocks = RelationGetNumberOfBlocks(column.relation);
  for (BlockNumber block = 0; block < blocks; ++block) {
    CHECK_FOR_INTERRUPTS();
    if (pg_prng_double(&pg_global_prng_state) * 100 < sample)
      scan_block(column, block, visit, state);
  }
}

Oid operator_class_of_first(Relation index) {
  bool null = false;
  const Datum classes =
      SysCacheGetAttr(INDEXRELID, index->rd_indextuple, Anum_pg_index_indclass, &null);
  return reinterpret_cast<oidvector*>(DatumGetPointer(classes))->values[0];
}

// Returns whether a btree index contains every row of the table, in the order of the column. An
// index with an operator class of another role could run functions of that role. The function
// serves() skips an index that the current snapshot may not use, as the planner does.
bool serves(Relation index, const Column& column) {
  const FormData_pg_index& form = *index->rd_index;
  return form.indisvalid && form.indkey.values[0] == column.number &&
         heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, nullptr) &&
         operator_class_of_first(index) == integers_ascending(column.type) &&
         (!form.indcheckxmin ||
          TransactionIdPrecedes(HeapTupleHeaderGetXmin(index->rd_indextuple->t_data),
                                TransactionXmin));
}

// Null values at the end of the index are skipped without calling a comparison function.
void visit_end(const Column& column, Relation index, ScanDirection direction, Visit visit,
               void* state) {
  ScanKeyData not_null;
  ScanKeyEntryInitialize(&not_null, SK_ISNULL | SK_SEARCHNOTNULL, column.number, InvalidStrategy,
                         InvalidOid, InvalidOid, InvalidOid, Datum{0});
  SysScanDesc const rows =
      systable_beginscan_ordered(column.relation, index, GetActiveSnapshot(), 1, &not_null);
  const HeapTuple tuple = systable_getnext_ordered(rows, direction);
  bool null = true;
  Datum value{0};
  if (HeapTupleIsValid(tuple))
    value = heap_getattr(tuple, column.number, RelationGetDescr(column.relation), &null);
  if (!null) visit(state, integer_of(column.type, value), false);
  systable_endscan_ordered(rows);
}

bool visit_ends_by_index(const Column& column, Visit visit, void* state) {
  List* const indexes = RelationGetIndexList(column.relation);
  bool found = false;
  const ListCell* cell = nullptr;
  foreach (cell, indexes) {
    Relation const index = index_open(lfirst_oid(cell), AccessShareLock);
    found = serves(index, column);
    if (found) {
      visit_end(column, index, ForwardScanDirection, visit, state);
      visit_end(column, index, BackwardScanDirection, visit, state);
    }
    index_close(index, AccessShareLock);
    if (found) break;
  }
  list_free(indexes);
  return found;
}

void visit_fetched(Visit visit, void* state) {
  for (uint64 row = 0; row < SPI_processed; ++row)
    for (int i = 1; i <= SPI_tuptable->tupdesc->natts; ++i) {
      bool null = false;
      const Datum value = SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, i, &null);
      visit(state, null ? 0 : DatumGetInt64(value), null);
    }
}

void query_owner(Relation relation, const char* column, bool ends, Visit visit, void* state) {
  constexpr long kFetched = 1000;
  const char* const name = quote_identifier(column);
  const char* const table = quote_qualified_identifier(
      get_namespace_name(RelationGetNamespace(relation)), name_of(relation));
  const char* const query =
      ends ? psprintf("SELECT pg_catalog.min(%s)::bigint, pg_catalog.max(%s)::bigint FROM ONLY %s",
                      name, name, table)
           : psprintf("SELECT %s::bigint FROM ONLY %s", name, table);
  const Before before = act_as(relation->rd_rel->relowner, "pg_catalog, pg_temp");
  // With constraint_exclusion, the planner evaluates CHECK constraints of partitions, which can
  // call functions of the table's owner. If `relation` is a view, its owner and the table's owner
  // can differ.
  set_config_option("constraint_exclusion", "off", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE,
                    true, 0, false);
  SPI_connect();
  Portal const rows =
      SPI_cursor_open_with_args(nullptr, query, 0, nullptr, nullptr, nullptr, true, 0);
  for (SPI_cursor_fetch(rows, true, kFetched); SPI_processed > 0;
       SPI_cursor_fetch(rows, true, kFetched)) {
    visit_fetched(visit, state);
    SPI_freetuptable(SPI_tuptable);
  }
  SPI_cursor_close(rows);
  SPI_finish();
  act_as_before(before);
}

void visit_one(Relation relation, const char* name, double sample, bool ends, Visit visit,
               void* state) {
  const char kind = relation->rd_rel->relkind;
  if (kind == RELKIND_PARTITIONED_TABLE) return;
  if (kind == RELKIND_VIEW || kind == RELKIND_FOREIGN_TABLE)
    return query_owner(relation, name, ends, visit, state);
  if (!RELKIND_HAS_TABLE_AM(kind) || !RelationIsScannable(relation))
    error_no_rows_to_read(name_of(relation));
  const Column column = column_of(relation, name);
  if (!OidIsValid(integers_ascending(column.type)))
    error_holds_no_integers(name_of(relation), name);
  if (!ends || !visit_ends_by_index(column, visit, state)) scan_share(column, sample, visit, state);
}

// Temporary tables of other sessions cannot be read, because their rows are in local buffers.
void visit_all(Oid relation, const char* column, double sample, bool ends, Visit visit,
               void* state) {
  check_may_read(relation, column);
  LockRelationOid(relation, AccessShareLock);
  const ListCell* cell = nullptr;
  foreach (cell, find_all_inheritors(relation, AccessShareLock, nullptr)) {
    Relation const part = try_relation_open(lfirst_oid(cell), NoLock);
    if (part == nullptr) error_relation_gone(lfirst_oid(cell));
    if (!RELATION_IS_OTHER_TEMP(part)) visit_one(part, column, sample, ends, visit, state);
    relation_close(part, NoLock);
  }
}

}  // namespace

void visit_column(Oid relation, const char* column, double sample, Visit visit, void* state) {
  visit_all(relation, column, sample, false, visit, state);
}

void visit_ends_of_column(Oid relation, const char* column, Visit visit, void* state) {
  visit_all(relation, column, 100, true, visit, state);
}

}  // namespace snowflake::pg
