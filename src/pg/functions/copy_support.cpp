// This planner support function of next_id() lets COPY insert many rows at once if a column default
// calls next_id().
//
// COPY inserts rows one by one if a column default is volatile, because the default might read the
// loaded table. The only volatile default with which COPY inserts many rows at once is nextval().
// While COPY prepares its defaults, next_id_support() replaces next_id() by next_id_for_copy(),
// which is the same C function, declared STABLE. COPY evaluates a STABLE default once for each row,
// like a volatile default.
//
// Outside of COPY, a STABLE next_id() would be wrong, because ALTER TABLE ADD COLUMN would give all
// rows the same id. Three conditions limit the use of next_id_for_copy() to PostgreSQL's function
// BeginCopyFrom(), which prepares COPY FROM:
//
//  - The field `root` (PlannerInfo) of the planner's support request is null. PostgreSQL sets
//    `root` when it plans a query, but not when it prepares a column default.
//
//  - COPY has created the current memory context. COPY TO creates a memory context of the same
//    name, but `root` is not null, because COPY TO plans a query. Other commands and logical apply
//    workers prepare their expressions in memory contexts with other names.
//
//  - next_id_for_copy() has an argument of type internal, so SQL statements cannot call it.
//
// next_id_support() stores no state in the session, so an error of COPY cannot affect later
// commands. COPY FROM, file_fdw and the initial copy of logical replication all prepare column
// defaults in BeginCopyFrom(), so all three use next_id_for_copy().
//
// The planner inlines SQL functions whose arguments are neither volatile nor expensive. If the
// planner inlined f(next_id_for_copy()) and f used its argument twice, each use would mint another
// id. The planner does not inline calls with an infinite cost. next_id_for_copy() therefore has an
// infinite cost.
//
// next_id_support() recognizes the memory context of COPY by its name. If a later PostgreSQL
// version renames COPY's memory context, next_id_support() does not recognize COPY. Without
// next_id_support(), COPY inserts rows one by one, and the test t/033_copy.pl fails.

#include <limits>

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

bool is_preparing_copy(const SupportRequestSimplify& request) {
  return request.root == nullptr && strcmp(CurrentMemoryContext->name, "COPY") == 0;
}

// Finds the overload of next_id_for_copy() with the arguments of `function` and an argument of type
// internal.
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

// Returns whether two SQL functions directly call the same C function. PostgreSQL calls a function
// with a SET clause or SECURITY DEFINER indirectly, through fmgr_security_definer().
bool run_the_same(Oid original, Oid replacement) {
  FmgrInfo one;
  FmgrInfo other;
  fmgr_info(original, &one);
  fmgr_info(replacement, &other);
  return one.fn_addr == other.fn_addr && one.fn_strict == other.fn_strict;
}

// If the role may not execute next_id(), for_copy() does not substitute next_id_for_copy(), so that
// the executor raises the privilege error.
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
