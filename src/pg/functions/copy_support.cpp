// The planner support function of next_id() and next_id_in(). If the default of a column mints, the
// support function lets COPY insert many rows at once.
//
// COPY inserts row by row if a default is volatile, because a volatile default might read the
// loaded table. COPY makes an exception only for nextval(). While COPY prepares its defaults,
// next_id_support() replaces next_id() by next_id_for_copy(): the same C function, declared STABLE.
// COPY evaluates each default once per row, with any volatility.
//
// In commands other than COPY, a STABLE call is wrong: ALTER TABLE ... ADD COLUMN would give the
// same id to all rows. Three conditions keep the replacement inside BeginCopyFrom():
//  - `root` of the request is null. The planner always passes a root, so no plan contains the
//    replacement, and a session cannot cache the replacement. A plan that a trigger of the COPY
//    makes also has a root.
//  - The current memory context is the context of COPY. BeginCopyFrom() switches to the context of
//    COPY, and switches back before the first row. BeginCopyTo() has a context of the name "COPY",
//    but plans only queries in the context. Everything else that plans an expression without a
//    query runs in another context: ADD COLUMN, the conditions of triggers, CHECK constraints of
//    tables and domains, the expressions of indexes and partitions, the arguments of EXECUTE and
//    CALL, the apply worker of logical replication, and every command that a trigger runs.
//  - The replacement has an argument of type internal, so no SQL statement can call the
//    replacement.
//
// No state is set for a COPY, so an error cannot leave any state behind. The three conditions also
// hold for file_fdw and the initial copy of logical replication, which call BeginCopyFrom(), too.
//
// The planner inlines an SQL function whose argument is neither VOLATILE nor expensive. If the
// function used its argument twice, each use would mint an id. The cost of the replacement is
// therefore infinite.
//
// If a later PostgreSQL version renames the context, COPY inserts row by row again. t/033_copy.pl
// then fails, because the test compares the WAL.

#include <limits>

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

bool is_preparing_copy(const SupportRequestSimplify& request) {
  return request.root == nullptr && strcmp(CurrentMemoryContext->name, "COPY") == 0;
}

// Finds the function that has the arguments of `function` and a last argument of type internal.
Oid replacement_of(Oid function) {
  const HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
  if (!HeapTupleIsValid(tuple)) return InvalidOid;
  const auto original = reinterpret_cast<Form_pg_proc>(GETSTRUCT(tuple));
  Oid arguments[FUNC_MAX_ARGS] = {};
  const int count = std::min<int>(original->pronargs, FUNC_MAX_ARGS - 1);
  std::copy_n(original->proargtypes.values, count, arguments);
  arguments[count] = INTERNALOID;
  const Oid replacement =
      GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid, CStringGetDatum("next_id_for_copy"),
                      PointerGetDatum(buildoidvector(arguments, count + 1)),
                      ObjectIdGetDatum(original->pronamespace));
  ReleaseSysCache(tuple);
  return replacement;
}

// Returns whether two SQL functions call the same C function. ALTER FUNCTION ... SET and SECURITY
// DEFINER add a wrapper, which makes the functions different.
bool run_the_same(Oid original, Oid replacement) {
  FmgrInfo one;
  FmgrInfo other;
  fmgr_info(original, &one);
  fmgr_info(replacement, &other);
  return one.fn_addr == other.fn_addr && one.fn_strict == other.fn_strict;
}

// If the role may not execute the original function, the executor must raise the error.
Node* for_copy(const FuncExpr& original) {
  if (!may_execute(original.funcid)) return nullptr;
  const Oid replacement = replacement_of(original.funcid);
  if (!OidIsValid(replacement) || !may_execute(replacement)) return nullptr;
  if (!run_the_same(original.funcid, replacement)) return nullptr;
  const auto call = static_cast<FuncExpr*>(copyObjectImpl(&original));
  call->funcid = replacement;
  call->args = lappend(call->args, makeNullConst(INTERNALOID, -1, InvalidOid));
  return reinterpret_cast<Node*>(call);
}

// The original function keeps the cost of the catalogue.
Node* cost_of(SupportRequestCost* request) {
  if (func_volatile(request->funcid) == PROVOLATILE_VOLATILE) return nullptr;
  request->startup = 0;
  request->per_tuple = std::numeric_limits<Cost>::infinity();
  return reinterpret_cast<Node*>(request);
}

}  // namespace

SF_SQL_FUNCTION(next_id_support) {
  const auto request = static_cast<Node*>(static_cast<void*>(PG_GETARG_POINTER(0)));
  if (IsA(request, SupportRequestCost))
    PG_RETURN_POINTER(cost_of(reinterpret_cast<SupportRequestCost*>(request)));
  if (!IsA(request, SupportRequestSimplify)) return Datum{0};
  const auto simplify = reinterpret_cast<const SupportRequestSimplify*>(request);
  PG_RETURN_POINTER(is_preparing_copy(*simplify) ? for_copy(*simplify->fcall) : nullptr);
}

}  // namespace snowflake::pg
