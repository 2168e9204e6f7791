// Some PostgreSQL commands lock a relation before they check privileges. While a command waits for
// a lock on a table of the extension, all sessions that mint wait behind the command. The utility
// hook checks privileges before commands that take ShareLock or a stronger lock.
//
// After a wait for a lock, PostgreSQL looks up the relation's name again. If a relation was dropped
// while a command waited for a lock, an unqualified name can match another relation of search_path.
// The utility hook adds the schema to an unqualified name.
#include "pg/guards/lock_guard.hpp"

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

constinit ProcessUtility_hook_type previous_utility_hook = nullptr;

// If DROP runs between two look-ups of a name, the name can match another relation.
Oid qualify(RangeVar* name) {
  for (;;) {
    const Oid relation = RangeVarGetRelid(name, NoLock, true);
    if (!OidIsValid(relation) || name->schemaname != nullptr) return relation;
    name->schemaname = get_namespace_name(get_rel_namespace(relation));
    CHECK_FOR_INTERRUPTS();
  }
}

// Returns true for the extensions whose tables are read to mint ids, to lease regions, or to route
// queries to shards.
bool is_guarded(const char* extension) {
  return extension != nullptr &&
         (strcmp(extension, "snowflake") == 0 || strcmp(extension, "snowflake_fleet") == 0 ||
          strcmp(extension, "snowflake_routing") == 0);
}

void refuse_if_state(RangeVar* name) {
  if (name == nullptr) return;
  const Oid relation = qualify(name);
  if (!OidIsValid(relation) || owns_relation(relation)) return;
  const Oid extension = getExtensionOfObject(RelationRelationId, relation);
  if (!OidIsValid(extension) || !is_guarded(get_extension_name(extension))) return;
  aclcheck_error(ACLCHECK_NOT_OWNER, get_relkind_objtype(get_rel_relkind(relation)), name->relname);
}

void check_constraint(const Constraint* constraint) {
  if (constraint->contype == CONSTR_FOREIGN) refuse_if_state(constraint->pktable);
}

void check_column(const ColumnDef* column) {
  ListCell* cell = nullptr;
  foreach (cell, column->constraints) check_constraint(lfirst_node(Constraint, cell));
}

// check_alter_table() also checks the foreign keys of a new table, because CREATE TABLE runs an
// ALTER TABLE statement that adds the foreign keys.
void check_alter_table(const AlterTableStmt* statement) {
  ListCell* cell = nullptr;
  foreach (cell, statement->cmds) {
    const auto command = lfirst_node(AlterTableCmd, cell);
    if (command->def == nullptr) continue;
    if (IsA(command->def, PartitionCmd)) {
      refuse_if_state(reinterpret_cast<PartitionCmd*>(command->def)->name);
    } else if (IsA(command->def, Constraint)) {
      check_constraint(reinterpret_cast<Constraint*>(command->def));
    } else if (IsA(command->def, ColumnDef)) {
      check_column(reinterpret_cast<ColumnDef*>(command->def));
    }
  }
}

void check_create_table(const CreateStmt* statement) {
  ListCell* cell = nullptr;
  foreach (cell, statement->inhRelations) refuse_if_state(lfirst_node(RangeVar, cell));
}

bool locks_before_it_asks(const Node* statement) {
  switch (nodeTag(statement)) {
    case T_RuleStmt:
    case T_CreateTrigStmt:
    case T_AlterObjectDependsStmt:
    case T_AlterTableStmt:
    case T_CreateStmt:
    case T_CreateForeignTableStmt:
      return true;
    default:
      return false;
  }
}

void check_statement(Node* statement) {
  switch (nodeTag(statement)) {
    case T_RuleStmt:
      return refuse_if_state(reinterpret_cast<RuleStmt*>(statement)->relation);
    case T_CreateTrigStmt:
      refuse_if_state(reinterpret_cast<CreateTrigStmt*>(statement)->relation);
      return refuse_if_state(reinterpret_cast<CreateTrigStmt*>(statement)->constrrel);
    case T_AlterObjectDependsStmt:
      return refuse_if_state(reinterpret_cast<AlterObjectDependsStmt*>(statement)->relation);
    case T_AlterTableStmt:
      return check_alter_table(reinterpret_cast<AlterTableStmt*>(statement));
    case T_CreateStmt:
      return check_create_table(reinterpret_cast<CreateStmt*>(statement));
    case T_CreateForeignTableStmt:
      return check_create_table(&reinterpret_cast<CreateForeignTableStmt*>(statement)->base);
    default:
      return;
  }
}

void before_utility(PlannedStmt* planned, const char* query, bool read_only_tree,
                    ProcessUtilityContext context, ParamListInfo parameters,
                    QueryEnvironment* environment, DestReceiver* receiver,
                    QueryCompletion* completion) {
  if (IsTransactionState() && locks_before_it_asks(planned->utilityStmt)) {
    if (read_only_tree) planned = static_cast<PlannedStmt*>(copyObjectImpl(planned));
    read_only_tree = false;
    check_statement(planned->utilityStmt);
  }
  const auto next = previous_utility_hook ? previous_utility_hook : standard_ProcessUtility;
  next(planned, query, read_only_tree, context, parameters, environment, receiver, completion);
}

}  // namespace

// The first call of the event trigger snowflake_guard_commands loads the library, which installs
// hooks for later commands. The event trigger calls check_statement() for the command that loads
// the library, because the hook is installed too late to check the command.
SF_SQL_FUNCTION(guard_commands) {
  if (!CALLED_AS_EVENT_TRIGGER(fcinfo)) elog(ERROR, "not called as an event trigger");
  check_statement(reinterpret_cast<EventTriggerData*>(fcinfo->context)->parsetree);
  PG_RETURN_NULL();
}

void install_lock_guard() {
  previous_utility_hook = ProcessUtility_hook;
  ProcessUtility_hook = before_utility;
}

}  // namespace snowflake::pg
