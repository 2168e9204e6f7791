// run_as() and query_as() run a statement about a table as the table's owner, as REINDEX does.
// Index predicates, CHECK constraints, defaults, triggers and policies can call functions of the
// table's owner. Without run_as(), functions of a table's owner would run with the rights of the
// caller.

#include "pg/functions/run_as.hpp"

#include "pg/errors/errors_routing.hpp"

namespace snowflake::pg {

Before act_as(Oid role, const char* path) {
  Before before{};
  GetUserIdAndSecContext(&before.user, &before.context);
  const char* const name = GetUserNameFromId(role, false);
  if (!may_act_as(before.user, role)) error_may_not_act_as(name);
  // act_as_before() restores all settings that the statement changes.
  before.settings = NewGUCNestLevel();
  set_config_option("search_path", path, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
                    false);
  // Functions of a table's owner must not get the caller's rights. SECURITY_RESTRICTED_OPERATION
  // forbids SET ROLE, deferred triggers, and temporary tables that hide the caller's tables.
  if (role != before.user)
    SetUserIdAndSecContext(role, before.context | SECURITY_RESTRICTED_OPERATION);
  return before;
}

void act_as_before(const Before& before) {
  AtEOXact_GUC(false, before.settings);
  SetUserIdAndSecContext(before.user, before.context);
}

namespace {

// If the table was dropped, `owner` is null, and run_as() raises an error instead of skipping the
// statement.
struct Task {
  Oid role;
  const char* statement;
  const char* path;
};

Task task_of(FunctionCallInfo fcinfo) {
  if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(2)) return {InvalidOid, "", ""};
  return {PG_GETARG_OID(0), text_to_cstring(PG_GETARG_TEXT_PP(1)),
          text_to_cstring(PG_GETARG_TEXT_PP(2))};
}

// The rows of the statement's result are in SPI_tuptable. REQUIRES SPI_connect().
void execute(const char* statement) {
  if (SPI_execute(statement, false, 0) < 0) error_may_not_be_run(statement);
}

// For a set-returning function, PostgreSQL compares the columns of the rows with the column list in
// the caller's query.
void keep_rows(ReturnSetInfo* result) {
  if (SPI_tuptable == nullptr) return;
  const MemoryContext previous = MemoryContextSwitchTo(result->econtext->ecxt_per_query_memory);
  result->setDesc = CreateTupleDescCopy(SPI_tuptable->tupdesc);
  MemoryContextSwitchTo(previous);
  for (uint64 i = 0; i < SPI_processed; ++i)
    tuplestore_puttuple(result->setResult, SPI_tuptable->vals[i]);
}

}  // namespace

SF_SQL_FUNCTION(run_as) {
  const Task task = task_of(fcinfo);
  const Before before = act_as(task.role, task.path);
  SPI_connect();
  execute(task.statement);
  SPI_finish();
  act_as_before(before);
  PG_RETURN_VOID();
}

SF_SQL_FUNCTION(query_as) {
  const Task task = task_of(fcinfo);
  InitMaterializedSRF(fcinfo, 0);
  const Before before = act_as(task.role, task.path);
  SPI_connect();
  execute(task.statement);
  keep_rows(reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo));
  SPI_finish();
  act_as_before(before);
  PG_RETURN_NULL();
}

}  // namespace snowflake::pg
