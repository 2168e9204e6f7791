// snowflake.set_id('user_id'): a trigger for tables whose rows belong to the shard of another
// column's id; with 'hash', to the shard for another column's value. A default cannot refer to a
// column. And set_id(), for clients that insert NULL: the row gets what the column's default gives.

#include "pg/functions/shard_for.hpp"
#include "pg/checks/seal_check.hpp"
#include "pg/errors/errors_routing.hpp"
#include "pg/server/settings.hpp"
#include "pg/server/postgres.hpp"

extern "C" Datum snowflake_next_id(PG_FUNCTION_ARGS);
extern "C" Datum snowflake_next_id_near(PG_FUNCTION_ARGS);

namespace snowflake::pg {

namespace {

int number_of(Relation relation, const char* name) {
  const int column = SPI_fnumber(RelationGetDescr(relation), name);
  if (column <= 0) error_no_such_column(RelationGetRelationName(relation), name);
  return column;
}

Form_pg_attribute attribute_of(Relation relation, int column) {
  return TupleDescAttr(RelationGetDescr(relation), column - 1);
}

int id_column(Relation relation, const char* name) {
  const int column = number_of(relation, name);
  const Oid type = attribute_of(relation, column)->atttypid;
  if (type != INT8OID)
    error_not_bigint(RelationGetRelationName(relation), name, format_type_be(type));
  return column;
}

int key_column(Relation relation, const char* name) {
  const int column = number_of(relation, name);
  const Oid type = attribute_of(relation, column)->atttypid;
  if (!can_be_key(type))
    error_no_key_type(RelationGetRelationName(relation), name, format_type_be(type));
  return column;
}

// The arguments of the trigger: the key, "" for none, the column of the id, and whether keys are
// hashed.
struct Arguments {
  const char* key;
  const char* id;
  bool hash;
};

Arguments arguments_of(const Trigger& trigger, Relation relation) {
  const int count = trigger.tgnargs;
  char** const given = trigger.tgargs;
  if (count > 3 || (count == 3 && strcmp(given[2], "hash") != 0)) error_set_id_arguments(count);
  Arguments arguments{count == 0 ? "" : given[0], count < 2 ? "id" : given[1], count == 3};
  if (count == 2 && strcmp(given[1], "hash") == 0) {
    const int column = SPI_fnumber(RelationGetDescr(relation), "hash");
    if (column > 0 && attribute_of(relation, column)->atttypid == INT8OID)
      error_hash_ambiguous(RelationGetRelationName(relation), given[0]);
    arguments.id = "id";
    arguments.hash = true;
  }
  return arguments;
}

// A number that is no id says nothing of a shard: as one, those up to a few millions would all be
// of shard 0, and the next ones of the next.
void refuse_plain_number(Relation relation, const char* key, int64_t id) {
  const auto bits = static_cast<uint64_t>(id);
  if (layout.contains(bits) && !layout.is_of_first_hour(bits)) return;
  error_key_is_no_id(RelationGetRelationName(relation), key, id);
}

HeapTuple with_value(HeapTuple row, TupleDesc row_type, int column, Datum value, bool null) {
  return heap_modify_tuple_by_cols(row, row_type, 1, &column, &value, &null);
}

struct ColumnDefault {
  ExprState* expression;
  ExprContext* context;
};

// Made once a statement, for which the trigger's FmgrInfo lives.
const ColumnDefault& default_of(FmgrInfo* function, Relation relation, int column) {
  if (function->fn_extra == nullptr) {
    const MemoryContext outer = MemoryContextSwitchTo(function->fn_mcxt);
    Node* const expression = build_column_default(relation, column);
    if (expression == nullptr)
      error_no_default(RelationGetRelationName(relation),
                       NameStr(attribute_of(relation, column)->attname));
    auto* const made = static_cast<ColumnDefault*>(palloc(sizeof(ColumnDefault)));
    made->expression =
        ExecInitExpr(expression_planner(reinterpret_cast<Expr*>(expression)), nullptr);
    made->context = CreateStandaloneExprContext();
    function->fn_extra = made;
    MemoryContextSwitchTo(outer);
  }
  return *static_cast<ColumnDefault*>(function->fn_extra);
}

// The row with the value of its column's default: evaluated as INSERT does it, by the same role.
HeapTuple with_default(FmgrInfo* function, Relation relation, HeapTuple row, const char* name) {
  const int column = number_of(relation, name);
  const TupleDesc row_type = RelationGetDescr(relation);
  const ColumnDefault& own = default_of(function, relation, column);
  bool null = false;
  heap_getattr(row, column, row_type, &null);
  if (!null) return row;
  ResetExprContext(own.context);
  const Datum value = ExecEvalExprSwitchContext(own.expression, own.context, &null);
  return with_value(row, row_type, column, value, null);
}

}  // namespace

SF_SQL_FUNCTION(set_id) {
  if (!CALLED_AS_TRIGGER(fcinfo)) error_not_an_insert_trigger();
  const auto trigger = reinterpret_cast<TriggerData*>(fcinfo->context);
  if (!TRIGGER_FIRED_BEFORE(trigger->tg_event) || !TRIGGER_FIRED_FOR_ROW(trigger->tg_event) ||
      !TRIGGER_FIRED_BY_INSERT(trigger->tg_event))
    error_not_an_insert_trigger();

  Relation relation = trigger->tg_relation;
  const Arguments arguments = arguments_of(*trigger->tg_trigger, relation);
  const TupleDesc row_type = RelationGetDescr(relation);
  const HeapTuple row = trigger->tg_trigtuple;
  if (*arguments.key == '\0')
    return PointerGetDatum(with_default(fcinfo->flinfo, relation, row, arguments.id));
  const int key =
      arguments.hash ? key_column(relation, arguments.key) : id_column(relation, arguments.key);
  const int id = id_column(relation, arguments.id);

  // A row that brings its id along keeps it, as with a default.
  bool null = false;
  heap_getattr(row, id, row_type, &null);
  if (!null) return PointerGetDatum(row);
  const Datum owner = heap_getattr(row, key, row_type, &null);
  if (null) error_key_null(RelationGetRelationName(relation), arguments.key);

  Datum minted;
  if (arguments.hash) {
    const Form_pg_attribute column = attribute_of(relation, key);
    const int32_t shard = shard_for_key(owner, column->atttypid, column->attcollation);
    minted = DirectFunctionCall1(snowflake_next_id, Int32GetDatum(shard));
  } else {
    require_seal();
    refuse_plain_number(relation, arguments.key, DatumGetInt64(owner));
    minted = DirectFunctionCall1(snowflake_next_id_near, owner);
  }
  return PointerGetDatum(with_value(row, row_type, id, minted, false));
}

}  // namespace snowflake::pg
