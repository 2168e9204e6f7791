// A statement of alter_shards() may change only relations in the schema of a shard.

#include "pg/errors/errors_routing.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

// Raises an error if pg_catalog contains a relation called `name`, because PostgreSQL searches
// pg_catalog before the schema of the shard.
void check_name(const char* name) {
  if (OidIsValid(get_relname_relid(name, PG_CATALOG_NAMESPACE)))
    error_statement_leads_out(quote_qualified_identifier("pg_catalog", name));
}

void check_relation(const RangeVar* relation) {
  if (relation == nullptr) return;
  if (relation->relpersistence == RELPERSISTENCE_TEMP) error_statement_temporary(relation->relname);
  if (relation->schemaname != nullptr || relation->catalogname != nullptr)
    error_statement_leads_out(quote_qualified_identifier(relation->schemaname, relation->relname));
  check_name(relation->relname);
}

// Raises an error if a name in a DROP or COMMENT statement contains a schema, or names a relation
// of pg_catalog. The argument `parts` is the number of parts of a name without a schema, for
// example 2 for a column of a table.
void check_names(List* names, int parts) {
  if (list_length(names) != parts) error_statement_leads_out(NameListToString(names));
  check_name(strVal(linitial(names)));
}

void check_constraint(const Node* element) {
  if (IsA(element, Constraint)) check_relation(castNode(Constraint, element)->pktable);
}

void check_constraints(const List* elements) {
  const ListCell* cell = nullptr;
  foreach (cell, elements) check_constraint(static_cast<Node*>(lfirst(cell)));
}

// A LIKE clause of CREATE TABLE is allowed, because the clause only reads its source table.
void check_element(const Node* element) {
  if (IsA(element, ColumnDef)) check_constraints(castNode(ColumnDef, element)->constraints);
  check_constraint(element);
}

void check_create_table(const CreateStmt* statement) {
  const ListCell* cell = nullptr;
  check_relation(statement->relation);
  foreach (cell, statement->inhRelations) check_relation(lfirst_node(RangeVar, cell));
  foreach (cell, statement->tableElts) check_element(static_cast<Node*>(lfirst(cell)));
}

bool is_known(AlterTableType what) {
  switch (what) {
    case AT_AddColumn:
    case AT_ColumnDefault:
    case AT_DropNotNull:
    case AT_SetNotNull:
    case AT_DropExpression:
    case AT_SetStatistics:
    case AT_SetOptions:
    case AT_ResetOptions:
    case AT_SetStorage:
    case AT_SetCompression:
    case AT_DropColumn:
    case AT_AddConstraint:
    case AT_AlterConstraint:
    case AT_ValidateConstraint:
    case AT_DropConstraint:
    case AT_AlterColumnType:
    case AT_ClusterOn:
    case AT_DropCluster:
    case AT_SetLogged:
    case AT_SetUnLogged:
    case AT_SetTableSpace:
    case AT_SetRelOptions:
    case AT_ResetRelOptions:
    case AT_EnableTrig:
    case AT_EnableAlwaysTrig:
    case AT_EnableReplicaTrig:
    case AT_DisableTrig:
    case AT_EnableTrigUser:
    case AT_DisableTrigUser:
    case AT_AddInherit:
    case AT_DropInherit:
    case AT_AttachPartition:
    case AT_DetachPartition:
    case AT_ReplicaIdentity:
    case AT_EnableRowSecurity:
    case AT_DisableRowSecurity:
    case AT_ForceRowSecurity:
    case AT_NoForceRowSecurity:
    case AT_AddIdentity:
    case AT_SetIdentity:
    case AT_DropIdentity:
      return true;
    default:
      return false;
  }
}

void check_alter_command(const AlterTableCmd* command) {
  if (!is_known(command->subtype)) error_statement_not_known("ALTER TABLE");
  if (command->behavior == DROP_CASCADE) error_statement_cascades();
  const Node* const of = command->def;
  if (of == nullptr) return;
  if (IsA(of, RangeVar)) check_relation(castNode(RangeVar, of));
  if (IsA(of, PartitionCmd)) check_relation(castNode(PartitionCmd, of)->name);
  check_element(of);
}

void check_alter_table(const AlterTableStmt* statement) {
  check_relation(statement->relation);
  const ListCell* cell = nullptr;
  foreach (cell, statement->cmds) check_alter_command(lfirst_node(AlterTableCmd, cell));
}

// Returns the number of parts in the name of an object, or 0 for a forbidden kind of object.
int parts_of_name(ObjectType type) {
  switch (type) {
    case OBJECT_TABLE:
    case OBJECT_INDEX:
    case OBJECT_VIEW:
      return 1;
    case OBJECT_COLUMN:
    case OBJECT_TABCONSTRAINT:
    case OBJECT_TRIGGER:
    case OBJECT_POLICY:
      return 2;
    default:
      return 0;
  }
}

void check_drop(const DropStmt* statement, const char* command) {
  const int parts = parts_of_name(statement->removeType);
  if (parts == 0) error_statement_not_known(command);
  if (statement->behavior == DROP_CASCADE) error_statement_cascades();
  if (statement->concurrent) error_statement_concurrent(command);
  const ListCell* cell = nullptr;
  foreach (cell, statement->objects) check_names(lfirst_node(List, cell), parts);
}

void check_comment(const CommentStmt* statement) {
  const int parts = parts_of_name(statement->objtype);
  if (parts == 0) error_statement_not_known("COMMENT");
  check_names(castNode(List, statement->object), parts);
}

void check(const Node* statement, const char* command) {
  switch (nodeTag(statement)) {
    case T_CreateStmt:
      return check_create_table(castNode(CreateStmt, statement));
    case T_AlterTableStmt:
      if (parts_of_name(castNode(AlterTableStmt, statement)->objtype) != 1)
        error_statement_not_known(command);
      return check_alter_table(castNode(AlterTableStmt, statement));
    case T_RenameStmt:
      if (parts_of_name(castNode(RenameStmt, statement)->renameType) == 0)
        error_statement_not_known(command);
      return check_relation(castNode(RenameStmt, statement)->relation);
    case T_IndexStmt:
      if (castNode(IndexStmt, statement)->concurrent) error_statement_concurrent(command);
      return check_relation(castNode(IndexStmt, statement)->relation);
    case T_ViewStmt:
      return check_relation(castNode(ViewStmt, statement)->view);
    case T_CreateTrigStmt:
      check_relation(castNode(CreateTrigStmt, statement)->constrrel);
      return check_relation(castNode(CreateTrigStmt, statement)->relation);
    case T_CreatePolicyStmt:
      return check_relation(castNode(CreatePolicyStmt, statement)->table);
    case T_AlterPolicyStmt:
      return check_relation(castNode(AlterPolicyStmt, statement)->table);
    case T_DropStmt:
      return check_drop(castNode(DropStmt, statement), command);
    case T_CommentStmt:
      return check_comment(castNode(CommentStmt, statement));
    default:
      error_statement_not_known(command);
  }
}

// The error position of the parser is a position in the statement, not in the caller's query.
void place_in_statement(void* text) {
  const int place = geterrposition();
  if (place <= 0) return;
  errposition(0);
  internalerrposition(place);
  internalerrquery(static_cast<const char*>(text));
}

List* parse(char* text) {
  ErrorContextCallback context{error_context_stack, place_in_statement, text};
  error_context_stack = &context;
  List* const statements = raw_parser(text, RAW_PARSE_DEFAULT);
  error_context_stack = context.previous;
  return statements;
}

}  // namespace

SF_SQL_FUNCTION(check_shard_statement) {
  const List* const statements = parse(text_to_cstring(PG_GETARG_TEXT_PP(0)));
  if (statements == NIL) error_statement_not_known("empty text");
  const ListCell* cell = nullptr;
  foreach (cell, statements) {
    Node* const statement = lfirst_node(RawStmt, cell)->stmt;
    check(statement, CreateCommandName(statement));
  }
  PG_RETURN_VOID();
}

}  // namespace snowflake::pg
