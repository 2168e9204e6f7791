// give_ids(): the UPDATE of backfill(). What its owner has hung on a table, triggers above all,
// runs with the owner's rights, whoever calls, as in REINDEX and in logical replication.

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

// Owner and name of one row of the catalogue: between two look-ups the table may be dropped.
struct Table {
  Oid owner;  // InvalidOid where there is no such relation
  const char* name;
};

Table table_of(Oid relation) {
  const HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
  if (!HeapTupleIsValid(tuple)) return {InvalidOid, nullptr};
  const auto form = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple));
  const Table table{
      form->relowner,
      quote_qualified_identifier(get_namespace_name(form->relnamespace), NameStr(form->relname))};
  ReleaseSysCache(tuple);
  return table;
}

// Counted are the rows that have it: a trigger may take it away again.
const char* update_of(const char* table, const char* column) {
  return psprintf(
      "WITH given AS (UPDATE %s AS t SET %s = v.id FROM ROWS FROM (pg_catalog.unnest($1), "
      "pg_catalog.unnest($2)) AS v (place, id) "
      "WHERE t.ctid OPERATOR(pg_catalog.=) v.place RETURNING t.%s IS NOT DISTINCT FROM v.id AS "
      "has_it) SELECT pg_catalog.count(*) FILTER (WHERE has_it) FROM given",
      table, column, column);
}

int64 run_update(const char* query, Datum places, Datum ids) {
  Oid types[] = {TIDARRAYOID, INT8ARRAYOID};
  Datum values[] = {places, ids};
  SPI_connect();
  const int result = SPI_execute_with_args(query, 2, types, values, nullptr, false, 0);
  if (result != SPI_OK_SELECT || SPI_processed != 1)
    elog(ERROR, "the UPDATE of backfill() ended in %s, %llu rows", SPI_result_code_string(result),
         static_cast<unsigned long long>(SPI_processed));
  bool is_null = false;
  const int64 done =
      DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &is_null));
  SPI_finish();
  return done;
}

}  // namespace

SF_SQL_FUNCTION(give_ids) {
  const Table table = table_of(PG_GETARG_OID(0));
  if (!OidIsValid(table.owner)) PG_RETURN_INT64(0);
  const char* const query = update_of(table.name, quote_identifier(NameStr(*PG_GETARG_NAME(1))));
  Oid user = InvalidOid;
  int context = 0;
  GetUserIdAndSecContext(&user, &context);
  // Settings that a trigger changes are taken back. An error takes back all of it.
  const int settings = NewGUCNestLevel();
  // A caller who has not the owner's rights is not given them.
  if (user != table.owner && has_privs_of_role(user, table.owner))
    SetUserIdAndSecContext(table.owner, context | SECURITY_RESTRICTED_OPERATION);
  const int64 done = run_update(query, PG_GETARG_DATUM(2), PG_GETARG_DATUM(3));
  AtEOXact_GUC(false, settings);
  SetUserIdAndSecContext(user, context);
  PG_RETURN_INT64(done);
}

}  // namespace snowflake::pg
