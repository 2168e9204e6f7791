#include "pg/errors/errors_routing.hpp"

#include "pg/errors/refusal.hpp"
#include "pg/server/settings.hpp"
#include "pg/server/text.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

void error_hashes_combined_otherwise(uint64_t shard, uint64_t placed) {
  ereport(
      ERROR,
      (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
       errmsg("this version of PostgreSQL computes hash partitions in an unsupported way"),
       errdetail("In tables that are partitioned by snowflake.by_shard, rows of shard %llu would "
                 "be in the partition for shard %llu.",
                 static_cast<unsigned long long>(shard), static_cast<unsigned long long>(placed)),
       errhint("Use the previous version of PostgreSQL, or a version of snowflake that supports "
               "this version of PostgreSQL.")));
}

void error_tables_partitioned(const char* tables, int more) {
  ereport(
      ERROR,
      (errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
       errmsg(
           "cannot drop extension snowflake because tables are partitioned by its operator class"),
       more == 0 ? errdetail("These tables would be dropped with their rows: %s.", tables)
                 : errdetail("These tables would be dropped with their rows: %s, and %d more.",
                             tables, more),
       errhint(
           "Drop these tables first, or move their rows to tables with another partition key.")));
}

void error_node_without_origin() {
  refuse(Blocker::node_without_origin, nullptr,
         "This node has the default settings: region 0 and all shards. Citus can evaluate "
         "column defaults on any node, so two nodes could mint the same ids.");
}

void error_not_an_insert_trigger() {
  ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                  errmsg("set_id() must be a row trigger before INSERT"),
                  errdetail("The function sets the id of a row before the row is inserted."),
                  errhint("Use set_id() in CREATE TRIGGER ... BEFORE INSERT ... FOR EACH ROW.")));
}

void error_set_id_arguments(int count) {
  ereport(
      ERROR,
      (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED), errmsg("invalid arguments of set_id()"),
       errdetail(
           "CREATE TRIGGER passes %d arguments. The first argument of set_id() names the column "
           "that decides the shard. The second argument names the id column, by default \"id\". "
           "If the first column does not contain ids, add the argument 'hash'. A number of shards "
           "may follow.",
           count),
       errhint("Write the arguments in CREATE TRIGGER as in snowflake.set_id('user_id').")));
}

void error_no_default(const char* relation, const char* column) {
  ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                  errmsg("column \"%s\" of table \"%s\" has no default", column, relation),
                  errdetail("Without a first argument, snowflake.set_id() sets a missing id to "
                            "the default of the id column."),
                  errhint("Set a default with ALTER TABLE %s ALTER COLUMN %s SET DEFAULT.",
                          quote_identifier(relation), quote_identifier(column))));
}

void error_no_such_column(const char* relation, const char* column) {
  ereport(ERROR,
          (errcode(ERRCODE_UNDEFINED_COLUMN),
           errmsg("column \"%s\" of table \"%s\" does not exist", column, relation),
           errdetail("The column is an argument of the trigger function snowflake.set_id()."),
           errhint("Pass a column of the table to the trigger function in CREATE TRIGGER.")));
}

void error_not_bigint(const char* relation, const char* column, const char* type) {
  ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                  errmsg("column \"%s\" of table \"%s\" cannot hold an id", column, relation),
                  errdetail("The column has type %s. Ids have type bigint.", type),
                  errhint("Change the column's type to bigint.")));
}

void error_key_null(const char* relation, const char* column) {
  ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                  errmsg("column \"%s\" of table \"%s\" is null", column, relation),
                  errdetail("set_id() computes the shard of the row's id from this column."),
                  errhint("Give the column a value, or give the row an id.")));
}

void error_key_is_no_id(const char* relation, const char* column, int64_t key) {
  const auto bits = static_cast<uint64_t>(key);
  ereport(
      ERROR,
      (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
       errmsg("value %lld in column \"%s\" of table \"%s\" is not a minted id",
              static_cast<long long>(key), column, relation),
       layout.contains(bits)
           ? errdetail("In layout %s, the value would have the time %s, within an hour of the "
                       "epoch. If the time of a number is within an hour of the epoch, the "
                       "number is treated as a plain number, not as an id, and has no shard.",
                       layout_bits_text(layout), time_text(layout.ms_of_tick(layout.tick_of(bits))))
           : errdetail("Ids of layout %s are numbers from 0 to %lld.", layout_bits_text(layout),
                       static_cast<long long>(layout.last_id())),
       errhint("For keys that are not ids, use snowflake.set_id('%s', 'hash') in CREATE TRIGGER.",
               column)));
}

void error_no_key_type(const char* relation, const char* column, const char* type) {
  ereport(ERROR,
          (errcode(ERRCODE_DATATYPE_MISMATCH),
           errmsg("column \"%s\" of table \"%s\" cannot be hashed to a shard", column, relation),
           errdetail("The column has type %s. shard_for() accepts integers, uuid and text.", type),
           errhint("In CREATE TRIGGER, name a column of type bigint, integer, smallint, uuid or "
                   "text.")));
}

void error_hash_ambiguous(const char* relation, const char* key) {
  ereport(
      ERROR,
      (errcode(ERRCODE_AMBIGUOUS_COLUMN),
       errmsg("argument 'hash' of set_id() is ambiguous: table \"%s\" has a bigint column "
              "named \"hash\"",
              relation),
       errdetail("The argument 'hash' can be the name of the id column, or mean that the first "
                 "column is hashed."),
       errhint("Also pass the name of the id column: snowflake.set_id('%s', 'id', 'hash').", key)));
}

// Errors of shard_for() and next_id_in()

void error_collation_unknown() {
  ereport(ERROR, (errcode(ERRCODE_INDETERMINATE_COLLATION),
                  errmsg("could not determine which collation to use for shard_for()"),
                  errdetail("The collation decides which texts are equal."),
                  errhint("Use the COLLATE clause to set the collation explicitly.")));
}

void error_collation_nondeterministic(unsigned collation) {
  ereport(ERROR,
          (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
           errmsg("shard_for() does not support nondeterministic collations"),
           errdetail("Under collation \"%s\" texts of different bytes are equal, but would get "
                     "different shards.",
                     get_collation_name(collation)),
           errhint("Normalize the text, for example with lower(), and use COLLATE \"C\".")));
}

void error_shards_range(const char* shards) {
  ereport(
      ERROR,
      (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("shards %s are out of range", shards),
       errdetail("Layout %s has shards 0 to %u.", layout_bits_text(layout), layout.shards() - 1),
       errhint("Pass a range of shards, such as '[0,16)'.")));
}

void error_shard_count(int64_t shards) {
  error_shard_count(psprintf("%lld", static_cast<long long>(shards)));
}

void error_shard_count(const char* shards) {
  ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                  errmsg("invalid number of shards: \"%s\"", shards),
                  errdetail("Layout %s has %u shards.", layout_bits_text(layout), layout.shards()),
                  errhint("Pass a number from 1 to %u.", layout.shards())));
}

// Errors of alter_shards()

void error_statement_not_known(const char* command) {
  ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                  errmsg("alter_shards() does not run this %s", command),
                  errdetail("alter_shards() runs CREATE, ALTER, DROP and COMMENT ON for tables, "
                            "indexes, views, triggers and policies, but does not change owners."),
                  errhint("Run the statement in the schema of each shard yourself.")));
}

void error_statement_leads_out(const char* name) {
  ereport(ERROR, (errcode(ERRCODE_INVALID_SCHEMA_NAME),
                  errmsg("alter_shards() does not run a statement that contains the name %s", name),
                  errdetail("The statement may use only the tables of a shard's schema, which is "
                            "the only schema in search_path."),
                  errhint("Write table names without a schema.")));
}

void error_statement_temporary(const char* name) {
  ereport(ERROR, (errcode(ERRCODE_INVALID_TABLE_DEFINITION),
                  errmsg("alter_shards() cannot create the temporary relation \"%s\"", name),
                  errdetail("Temporary relations are not in the schema of a shard."),
                  errhint("Leave out TEMPORARY.")));
}

void error_statement_cascades() {
  ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                  errmsg("alter_shards() does not run DROP ... CASCADE"),
                  errdetail("The dependent objects can be in other schemas."),
                  errhint("Drop the dependent objects first.")));
}

void error_statement_concurrent(const char* command) {
  ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                  errmsg("alter_shards() does not run %s CONCURRENTLY", command),
                  errdetail("alter_shards() runs the statement in a transaction, in which "
                            "CONCURRENTLY is not possible."),
                  errhint("Run the statement in the schema of each shard yourself, or leave out "
                          "CONCURRENTLY.")));
}

void error_may_not_act_as(const char* role) {
  ereport(ERROR,
          (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
           errmsg("role \"%s\" does not have the rights of role \"%s\"",
                  GetUserNameFromId(GetUserId(), false), role),
           errdetail("Statements about a table run as the owner of the table, because they "
                     "can run the owner's functions."),
           errhint("Call the function as a member of role \"%s\", or as a superuser.", role)));
}

void error_may_not_be_run(const char* statement) {
  ereport(ERROR,
          (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("a function cannot run this statement"),
           errdetail("The statement is \"%s\".", statement),
           errhint("Remove COPY and transaction control statements such as COMMIT.")));
}

void error_of_routine(const char* state, const char* message, const char* detail,
                      const char* hint) {
  if (state == nullptr || strlen(state) != 5) elog(ERROR, "an error without SQLSTATE: %s", message);
  error_context_stack = nullptr;  // restored by the error handler
  ereport(ERROR, (errcode(MAKE_SQLSTATE(state[0], state[1], state[2], state[3], state[4])),
                  errmsg("%s", message), detail == nullptr ? 0 : errdetail("%s", detail),
                  hint == nullptr ? 0 : errhint("%s", hint)));
}

void error_table_not_new(const char* table) {
  ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                  errmsg("table \"%s\" may already contain rows", table),
                  errdetail("Existing rows must be checked against the foreign key."),
                  errhint("Run ALTER TABLE ... VALIDATE CONSTRAINT.")));
}

void error_no_rows_to_read(const char* relation) {
  ereport(ERROR,
          (errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("cannot read rows of \"%s\"", relation),
           errdetail("The relation is not a table or a view, or is a materialized view that has "
                     "not been populated."),
           errhint("Pass the name of a table.")));
}

void error_relation_gone(unsigned relation) {
  ereport(
      ERROR,
      (errcode(ERRCODE_UNDEFINED_TABLE), errmsg("relation with OID %u does not exist", relation),
       errdetail("The relation has been dropped."), errhint("Pass the name of a table.")));
}

void error_holds_no_integers(const char* relation, const char* column) {
  ereport(
      ERROR,
      (errcode(ERRCODE_UNDEFINED_COLUMN),
       errmsg("column \"%s\" of table \"%s\" does not contain stored integers", column, relation),
       errdetail("The column does not exist, is of another type, or is computed when it is read."),
       errhint("Pass the name of a column of type bigint, integer or smallint.")));
}

}  // namespace snowflake::pg
