// has_ids_of_origin() returns whether a column contains ids of a region and shard. backfill() and
// late_id() call has_ids_of_origin() before they use a region and shard.
//
// has_ids_of_origin() plans no query and evaluates no expression, so that functions of other roles
// never run.

#include "pg/server/postgres.hpp"
#include "pg/server/settings.hpp"

namespace snowflake::pg {

namespace {

struct Wanted {
  uint32_t origin;
  int64_t after;

  bool matches(Datum value) const {
    const int64_t id = DatumGetInt64(value);
    return id > after && id >= 0 && layout.contains(static_cast<uint64_t>(id)) &&
           layout.origin_of(static_cast<uint64_t>(id)) == origin;
  }
};

// Rows of open and prepared transactions are also found if the table uses the heap access method.
// Table access methods other than heap may support only MVCC snapshots.
struct Sight {
  SnapshotData dirty;
  Snapshot snapshot;

  explicit Sight(Relation table) {
    InitDirtySnapshot(dirty);
    snapshot = table->rd_rel->relam == HEAP_TABLE_AM_OID ? &dirty : GetActiveSnapshot();
  }
};

// An index is usable if the index contains every row of the table in the order of the type bigint.
bool is_usable(Relation index, AttrNumber column) {
  return index->rd_index->indisvalid && index->rd_rel->relam == BTREE_AM_OID &&
         index->rd_index->indkey.values[0] == column &&
         index->rd_opfamily[0] == INTEGER_BTREE_FAM_OID &&
         heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, nullptr);
}

Relation open_index(Relation table, AttrNumber column) {
  List* const indexes = RelationGetIndexList(table);
  ListCell* cell;
  foreach (cell, indexes) {
    Relation index = index_open(lfirst_oid(cell), AccessShareLock);
    if (is_usable(index, column)) return index;
    index_close(index, AccessShareLock);
  }
  return nullptr;
}

// The row of a matching index entry is also read, because the row may have been deleted.
bool index_has(Relation table, Relation index, const Wanted& wanted) {
  Sight sight(table);
  ScanKeyData key;
  ScanKeyEntryInitialize(&key, 0, 1, BTGreaterStrategyNumber, INT8OID, InvalidOid, F_INT8GT,
                         Int64GetDatum(wanted.after));
  TupleTableSlot* const slot = table_slot_create(table, nullptr);
  IndexScanDesc scan = begin_index_scan(table, index, sight.snapshot, 1);
  scan->xs_want_itup = true;
  index_rescan(scan, &key, 1, nullptr, 0);
  bool found = false;
  while (!found && index_getnext_tid(scan, ForwardScanDirection) != nullptr) {
    CHECK_FOR_INTERRUPTS();
    bool null = false;
    const Datum id = index_getattr(scan->xs_itup, 1, scan->xs_itupdesc, &null);
    found = !null && wanted.matches(id) && index_fetch_heap(scan, slot);
    ExecClearTuple(slot);
  }
  index_endscan(scan);
  ExecDropSingleTupleTableSlot(slot);
  return found;
}

bool table_has(Relation table, AttrNumber column, const Wanted& wanted) {
  Sight sight(table);
  TupleTableSlot* const slot = table_slot_create(table, nullptr);
  TableScanDesc scan = table_beginscan_strat(table, sight.snapshot, 0, nullptr, true, false);
  bool found = false;
  while (!found && table_scan_getnextslot(scan, ForwardScanDirection, slot)) {
    CHECK_FOR_INTERRUPTS();
    bool null = false;
    const Datum id = slot_getattr(slot, column, &null);
    found = !null && wanted.matches(id);
  }
  table_endscan(scan);
  ExecDropSingleTupleTableSlot(slot);
  return found;
}

// Foreign tables are skipped, because their rows are not in this database. Temporary tables of
// other sessions cannot be read.
bool is_readable(Relation table) {
  return (table->rd_rel->relkind == RELKIND_RELATION ||
          table->rd_rel->relkind == RELKIND_MATVIEW) &&
         !RELATION_IS_OTHER_TEMP(table);
}

bool has(Oid oid, const char* name, const Wanted& wanted) {
  Relation table = try_relation_open(oid, AccessShareLock);
  if (table == nullptr) return false;
  bool found = false;
  const AttrNumber column = get_attnum(oid, name);
  if (column > 0 && is_readable(table) && getBaseType(get_atttype(oid, column)) == INT8OID) {
    Relation index = open_index(table, column);
    found = index == nullptr ? table_has(table, column, wanted) : index_has(table, index, wanted);
    if (index != nullptr) index_close(index, AccessShareLock);
  }
  relation_close(table, AccessShareLock);
  return found;
}

}  // namespace

SF_SQL_FUNCTION(has_ids_of_origin) {
  const auto region = static_cast<uint32_t>(PG_GETARG_INT32(2));
  const auto shard = static_cast<uint32_t>(PG_GETARG_INT32(3));
  if (region >= layout.regions() || shard >= layout.shards()) PG_RETURN_BOOL(false);
  const Wanted wanted{layout.origin(region, shard), PG_GETARG_INT64(4)};
  const Oid relation = PG_GETARG_OID(0);
  if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relation))) PG_RETURN_BOOL(false);
  ListCell* cell;
  foreach (cell, find_all_inheritors(relation, AccessShareLock, nullptr))
    if (has(lfirst_oid(cell), NameStr(*PG_GETARG_NAME(1)), wanted)) PG_RETURN_BOOL(true);
  PG_RETURN_BOOL(false);
}

}  // namespace snowflake::pg
