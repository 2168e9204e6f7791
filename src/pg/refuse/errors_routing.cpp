#include "pg/refuse/errors_routing.hpp"

#include "pg/refuse/refusal.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

void error_hashes_combined_otherwise(uint64_t shard, uint64_t placed) {
  ereport(
      ERROR,
      (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
       errmsg("this version of PostgreSQL places rows in hash partitions in another way"),
       errdetail("Shard %llu would be placed as %llu, so partitions by snowflake.by_shard "
                 "would be read and written wrongly.",
                 static_cast<unsigned long long>(shard), static_cast<unsigned long long>(placed)),
       errhint("Go back to the version before, or to a version of the extension that was "
               "made for this one.")));
}

void error_tables_partitioned(const char* tables, int more) {
  ereport(ERROR,
          (errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
           errmsg("cannot drop extension snowflake because tables are partitioned by it"),
           more == 0 ? errdetail("These tables would be dropped with their rows: %s.", tables)
                     : errdetail("These tables would be dropped with their rows: %s, and %d more.",
                                 tables, more),
           errhint("Drop these tables first, or move their rows to tables that are partitioned "
                   "otherwise.")));
}

void error_node_without_place() {
  refuse(Obstacle::node_without_place, nullptr,
         "It mints in region 0 and owns all shards, as every node does by default, and Citus "
         "evaluates defaults on any node.");
}

void error_not_an_insert_trigger() {
  ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                  errmsg("set_id() was not called as a trigger before INSERT"),
                  errdetail("It puts an id into a row that is about to be inserted."),
                  errhint("Use it in CREATE TRIGGER ... BEFORE INSERT ... FOR EACH ROW.")));
}

void error_set_id_arguments(int count) {
  ereport(ERROR,
          (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
           errmsg("set_id() takes one or two column names"),
           errdetail("%d were given. The first is the column whose shard the row shares, the "
                     "second the column of the id, \"id\" by default.",
                     count),
           errhint("Name the column in CREATE TRIGGER, as in snowflake.set_id('user_id').")));
}

void error_no_such_column(const char* relation, const char* column) {
  ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
                  errmsg("column \"%s\" of table \"%s\" does not exist", column, relation),
                  errdetail("It is an argument of the trigger function snowflake.set_id()."),
                  errhint("Name a column of the table in CREATE TRIGGER.")));
}

void error_not_bigint(const char* relation, const char* column, const char* type) {
  ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                  errmsg("column \"%s\" of table \"%s\" cannot hold an id", column, relation),
                  errdetail("It is of type %s, and an id is a bigint.", type),
                  errhint("Change the column's type to bigint.")));
}

void error_key_null(const char* relation, const char* column) {
  ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                  errmsg("column \"%s\" of table \"%s\" is null", column, relation),
                  errdetail("The row's id takes its shard from this column."),
                  errhint("Give the column a value, or give the row an id.")));
}

}  // namespace snowflake::pg
