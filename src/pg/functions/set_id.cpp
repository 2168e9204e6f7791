// The trigger function snowflake.set_id('user_id') mints an id for a row that is inserted without
// an id. The new id is in the same shard as the id in column user_id. A column default cannot
// choose a shard by another column, because defaults cannot refer to columns. With the argument
// 'hash', set_id() chooses the shard by a hash of the key column, such as user_id. Without
// arguments, set_id() evaluates the default of the id column for rows with a NULL id.

#include "pg/functions/set_id.hpp"

#include <cstdlib>

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

struct Arguments {
  const char* key;
  const char* id;
  uint32_t shards;
};

bool is_hash(const char* argument) {
  return strcmp(argument, "hash") == 0;
}

uint32_t number_of_shards(const char* argument) {
  char* end = nullptr;
  const unsigned long shards = std::strtoul(argument, &end, 10);
  if (*argument < '0' || *argument > '9' || *end != '\0' || shards < 1 || shards > layout.shards())
    error_shard_count(argument);
  return static_cast<uint32_t>(shards);
}

// The trigger function set_id() takes up to four arguments: a key column or "", the id column, the
// word "hash", and the number of shards.
Arguments arguments_of(const char* const* given, int count, Relation relation) {
  const bool counted = count >= 3 && is_hash(given[count - 2]) && !is_hash(given[count - 1]);
  const int before_number = counted ? count - 1 : count;
  const bool hashed = before_number >= 2 && is_hash(given[before_number - 1]);
  if (hashed) require_seal();
  const int columns = hashed ? before_number - 1 : before_number;
  if (columns > 2) error_set_id_arguments(count);
  const Arguments arguments{count == 0 ? "" : given[0], columns < 2 ? "id" : given[1],
                            counted  ? number_of_shards(given[count - 1])
                            : hashed ? layout.shards()
                                     : 0};
  if (hashed && *arguments.key == '\0') error_set_id_arguments(count);
  if (hashed && count == 2) {
    const int column = SPI_fnumber(RelationGetDescr(relation), "hash");
    if (column > 0 && attribute_of(relation, column)->atttypid == INT8OID)
      error_hash_ambiguous(RelationGetRelationName(relation), given[0]);
  }
  return arguments;
}

struct Columns {
  int key;
  int id;
};

Columns columns_of(const Arguments& arguments, Relation relation) {
  const int key = arguments.shards != 0 ? key_column(relation, arguments.key)
                                        : id_column(relation, arguments.key);
  return {key, id_column(relation, arguments.id)};
}

// A key that is not an id raises an error, because a plain number has no shard. If small numbers
// were decoded as ids, the first few million numbers would all be in shard 0.
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

// The default expression is prepared once for each statement.
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

// The default is evaluated with the rights of the role that runs the INSERT.
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

void check_set_id(const char* const* arguments, int count, Relation relation) {
  const Arguments read = arguments_of(arguments, count, relation);
  if (*read.key == '\0') {
    number_of(relation, read.id);
  } else {
    const auto [key, id] = columns_of(read, relation);
    if (key == id) error_set_id_arguments(count);
    const Oid collation = attribute_of(relation, key)->attcollation;
    if (read.shards != 0 && OidIsValid(collation)) require_deterministic(collation);
  }
}

SF_SQL_FUNCTION(set_id) {
  if (!CALLED_AS_TRIGGER(fcinfo)) error_not_an_insert_trigger();
  const auto trigger = reinterpret_cast<TriggerData*>(fcinfo->context);
  if (!TRIGGER_FIRED_BEFORE(trigger->tg_event) || !TRIGGER_FIRED_FOR_ROW(trigger->tg_event) ||
      !TRIGGER_FIRED_BY_INSERT(trigger->tg_event))
    error_not_an_insert_trigger();

  Relation relation = trigger->tg_relation;
  const Arguments arguments =
      arguments_of(trigger->tg_trigger->tgargs, trigger->tg_trigger->tgnargs, relation);
  const TupleDesc row_type = RelationGetDescr(relation);
  const HeapTuple row = trigger->tg_trigtuple;
  if (*arguments.key == '\0')
    return PointerGetDatum(with_default(fcinfo->flinfo, relation, row, arguments.id));
  const auto [key, id] = columns_of(arguments, relation);

  // The trigger does not change a row that already has an id.
  bool null = false;
  heap_getattr(row, id, row_type, &null);
  if (!null) return PointerGetDatum(row);
  const Datum owner = heap_getattr(row, key, row_type, &null);
  if (null) error_key_null(RelationGetRelationName(relation), arguments.key);

  Datum minted;
  if (arguments.shards != 0) {
    const Form_pg_attribute column = attribute_of(relation, key);
    const int32_t shard =
        shard_for_key(owner, column->atttypid, column->attcollation, arguments.shards);
    minted = DirectFunctionCall1(snowflake_next_id, Int32GetDatum(shard));
  } else {
    require_seal();
    refuse_plain_number(relation, arguments.key, DatumGetInt64(owner));
    minted = DirectFunctionCall1(snowflake_next_id_near, owner);
  }
  return PointerGetDatum(with_value(row, row_type, id, minted, false));
}

}  // namespace snowflake::pg
