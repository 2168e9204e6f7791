// The planner support function of next_id() and next_id_in(): it lets COPY insert many rows at once
// if the default of a column mints.
//
// COPY inserts row by row if a default is volatile, because a volatile default might read the table
// that is being loaded. It exempts only nextval(). Our defaults read no table either. So while COPY
// prepares its defaults, this function replaces a call of next_id() by next_id_for_copy(): the same
// C function, declared STABLE. COPY evaluates each default once per row, with any volatility.
//
// Elsewhere a STABLE call is wrong. ALTER TABLE ... ADD COLUMN evaluates a STABLE default once and
// gives all rows that one id. Three conditions keep the replacement inside BeginCopyFrom():
//  - There is no `root`: the planner always passes one. So no plan contains the replacement, also
//    no plan that a trigger of the COPY makes and a session caches.
//  - The current memory context is COPY's own. BeginCopyFrom() switches to it and leaves it before
//    the first row. BeginCopyTo() has one as well, but plans only queries there. Everything else
//    that plans an expression without a query runs in another context: ADD COLUMN, the conditions
//    of triggers, CHECK constraints, the expressions of indexes and partitions, the arguments of
//    EXECUTE and CALL, the apply worker of logical replication. So does every command that a
//    trigger runs.
//  - The replacement has an argument of type internal, so no SQL can call it.
// There is no state to set and reset around a COPY, so an error leaves none behind. The condition
// also covers other callers of BeginCopyFrom(): file_fdw, and the initial copy of logical
// replication.
//
// A domain's CHECK that calls next_id() is the one expression that may be planned in
// BeginCopyFrom() and outlive it, in the type cache. It is evaluated for each value, so it also
// mints each time.
//
// If a later PostgreSQL names its context differently, COPY inserts row by row again: t/033_copy.pl
// compares the WAL.

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

bool is_preparing_copy(const SupportRequestSimplify& request) {
  return request.root == nullptr && strcmp(CurrentMemoryContext->name, "COPY") == 0;
}

// The function with the same arguments, then `internal`.
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

// If the role may not execute the original, the original stays, and the executor refuses it.
Node* for_copy(const FuncExpr& original) {
  if (!may_execute(original.funcid)) return nullptr;
  const Oid replacement = replacement_of(original.funcid);
  if (!OidIsValid(replacement) || !may_execute(replacement)) return nullptr;
  const auto call = static_cast<FuncExpr*>(copyObjectImpl(&original));
  call->funcid = replacement;
  call->args = lappend(call->args, makeNullConst(INTERNALOID, -1, InvalidOid));
  return reinterpret_cast<Node*>(call);
}

}  // namespace

SF_SQL_FUNCTION(next_id_support) {
  const auto request = static_cast<Node*>(static_cast<void*>(PG_GETARG_POINTER(0)));
  if (!IsA(request, SupportRequestSimplify)) return Datum{0};
  const auto simplify = reinterpret_cast<const SupportRequestSimplify*>(request);
  PG_RETURN_POINTER(is_preparing_copy(*simplify) ? for_copy(*simplify->fcall) : nullptr);
}

}  // namespace snowflake::pg
