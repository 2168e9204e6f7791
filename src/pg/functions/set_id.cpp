// snowflake.set_id('user_id'): a trigger for tables whose rows belong to the shard of another
// column's id. A default cannot refer to a column.

#include "pg/refuse/errors_routing.hpp"
#include "pg/server/postgres.hpp"

extern "C" Datum snowflake_next_id_near(PG_FUNCTION_ARGS);

namespace snowflake::pg {

namespace {

int id_column(Relation relation, const char* name) {
  const int column = SPI_fnumber(RelationGetDescr(relation), name);
  const char* const table = RelationGetRelationName(relation);
  if (column <= 0) error_no_such_column(table, name);
  const Oid type = TupleDescAttr(RelationGetDescr(relation), column - 1)->atttypid;
  if (type != INT8OID) error_not_bigint(table, name, format_type_be(type));
  return column;
}

}  // namespace

SF_SQL_FUNCTION(set_id) {
  if (!CALLED_AS_TRIGGER(fcinfo)) error_not_an_insert_trigger();
  const auto trigger = reinterpret_cast<TriggerData*>(fcinfo->context);
  if (!TRIGGER_FIRED_BEFORE(trigger->tg_event) || !TRIGGER_FIRED_FOR_ROW(trigger->tg_event) ||
      !TRIGGER_FIRED_BY_INSERT(trigger->tg_event))
    error_not_an_insert_trigger();
  const int arguments = trigger->tg_trigger->tgnargs;
  if (arguments < 1 || arguments > 2) error_set_id_arguments(arguments);

  Relation relation = trigger->tg_relation;
  const TupleDesc row_type = RelationGetDescr(relation);
  const HeapTuple row = trigger->tg_trigtuple;
  const char* const key_name = trigger->tg_trigger->tgargs[0];
  const int key = id_column(relation, key_name);
  int id = id_column(relation, arguments == 2 ? trigger->tg_trigger->tgargs[1] : "id");

  // A row that brings its id along keeps it, as with a default.
  bool null = false;
  heap_getattr(row, id, row_type, &null);
  if (!null) return PointerGetDatum(row);
  const Datum owner = heap_getattr(row, key, row_type, &null);
  if (null) error_key_null(RelationGetRelationName(relation), key_name);

  Datum minted = DirectFunctionCall1(snowflake_next_id_near, owner);
  bool is_null = false;
  return PointerGetDatum(heap_modify_tuple_by_cols(row, row_type, 1, &id, &minted, &is_null));
}

}  // namespace snowflake::pg
