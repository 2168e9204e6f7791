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
       errmsg("this version of PostgreSQL places rows in hash partitions in another way"),
       errdetail("Shard %llu would be placed as %llu, so partitions by snowflake.by_shard "
                 "would be read and written wrongly.",
                 static_cast<unsigned long long>(shard), static_cast<unsigned long long>(placed)),
       errhint("Use the previous version of PostgreSQL, or a version of the extension for this "
               "one.")));
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

void error_node_without_origin() {
  refuse(Blocker::node_without_origin, nullptr,
         "It mints in region 0 and owns all shards, as every node does by default, and Citus "
         "evaluates defaults on any node.");
}

void error_not_an_insert_trigger() {
  ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                  errmsg("set_id() must be a row trigger before INSERT"),
                  errdetail("It puts an id into a row that is about to be inserted."),
                  errhint("Use it in CREATE TRIGGER ... BEFORE INSERT ... FOR EACH ROW.")));
}

void error_set_id_arguments(int count) {
  ereport(
      ERROR,
      (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED), errmsg("invalid arguments of set_id()"),
       errdetail("%d arguments were given. The first is the column of the key. The second is "
                 "the column of the id, by default \"id\". If the key is not an id, 'hash' "
                 "follows, and after it a number of shards can follow.",
                 count),
       errhint("Name the column in CREATE TRIGGER, as in snowflake.set_id('user_id').")));
}

void error_no_default(const char* relation, const char* column) {
  ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                  errmsg("column \"%s\" of table \"%s\" has no default", column, relation),
                  errdetail("The trigger function snowflake.set_id() without a key column gives a "
                            "row without an id the value of the default."),
                  errhint("Set one with ALTER TABLE %s ALTER COLUMN %s SET DEFAULT.",
                          quote_identifier(relation), quote_identifier(column))));
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

void error_key_is_no_id(const char* relation, const char* column, int64_t key) {
  const auto bits = static_cast<uint64_t>(key);
  ereport(
      ERROR,
      (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
       errmsg("%lld in column \"%s\" of table \"%s\" is not an id that was minted",
              static_cast<long long>(key), column, relation),
       layout.contains(bits)
           ? errdetail("As an id of layout %s it would be of %s, within an hour of the epoch. So "
                       "it is treated as a plain number, which has no shard.",
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
           errdetail("It is of type %s; shard_for() takes integers, uuid and text.", type),
           errhint("Name a column of one of these types in CREATE TRIGGER.")));
}

void error_hash_ambiguous(const char* relation, const char* key) {
  ereport(
      ERROR,
      (errcode(ERRCODE_AMBIGUOUS_COLUMN),
       errmsg("'hash' in set_id() is ambiguous: table \"%s\" has a bigint column of that name",
              relation),
       errdetail("It can mean the column of the id, or a shard by the hash of the key."),
       errhint("Name the column of the id as well: snowflake.set_id('%s', 'id', 'hash').", key)));
}

// shard_for(), next_id_in()

void error_collation_unknown() {
  ereport(ERROR, (errcode(ERRCODE_INDETERMINATE_COLLATION),
                  errmsg("could not determine which collation to use for shard_for()"),
                  errdetail("Which texts are equal depends on it."),
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
                  errhint("Pass 1 to %u.", layout.shards())));
}

// alter_shards()

void error_statement_not_known(const char* command) {
  ereport(ERROR,
          (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
           errmsg("alter_shards() does not run this %s", command),
           errdetail("It runs CREATE, ALTER and DROP of tables, indexes, views, triggers and "
                     "policies, without a change of owner, and COMMENT ON these."),
           errhint("Run the statement in each schema yourself.")));
}

void error_statement_leads_out(const char* name) {
  ereport(
      ERROR,
      (errcode(ERRCODE_INVALID_SCHEMA_NAME), errmsg("the statement names %s", name),
       errdetail("It may use only the tables of a shard's schema, the only one in search_path."),
       errhint("Name the tables without their schema.")));
}

void error_statement_temporary(const char* name) {
  ereport(ERROR,
          (errcode(ERRCODE_INVALID_TABLE_DEFINITION),
           errmsg("the statement creates a temporary relation, \"%s\"", name),
           errdetail("It would not be in a shard's schema."), errhint("Leave out TEMPORARY.")));
}

void error_statement_cascades() {
  ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                  errmsg("alter_shards() does not run DROP ... CASCADE"),
                  errdetail("The dependent objects can be in other schemas."),
                  errhint("Drop the dependent objects first.")));
}

void error_statement_concurrent(const char* command) {
  ereport(
      ERROR,
      (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
       errmsg("alter_shards() does not run %s CONCURRENTLY", command),
       errdetail("It runs one transaction for each schema, so that an error leaves no changes."),
       errhint("Run it in each schema yourself, or leave out CONCURRENTLY.")));
}

// Statements with the rights of a table's owner

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
           errdetail("It is \"%s\".", statement),
           errhint("Leave out COPY and the statements that control transactions.")));
}

void error_of_routine(const char* state, const char* message, const char* detail,
                      const char* hint) {
  if (state == nullptr || strlen(state) != 5) elog(ERROR, "an error without SQLSTATE: %s", message);
  error_context_stack = nullptr;  // the handler that catches the error sets it again
  ereport(ERROR, (errcode(MAKE_SQLSTATE(state[0], state[1], state[2], state[3], state[4])),
                  errmsg("%s", message), detail == nullptr ? 0 : errdetail("%s", detail),
                  hint == nullptr ? 0 : errhint("%s", hint)));
}

void error_table_not_new(const char* table) {
  ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                  errmsg("table \"%s\" is not new and empty", table),
                  errdetail("Its rows must be checked."),
                  errhint("Run ALTER TABLE ... VALIDATE CONSTRAINT.")));
}

// Reading ids of a column

void error_no_rows_to_read(const char* relation) {
  ereport(ERROR,
          (errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("\"%s\" has no rows to read", relation),
           errdetail("It is not a table or a view, or it is a materialized view that has not "
                     "been populated."),
           errhint("Pass the name of a table.")));
}

void error_relation_gone(unsigned relation) {
  ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE), errmsg("relation %u does not exist", relation),
                  errdetail("It has been dropped."), errhint("Pass the name of a table.")));
}

void error_holds_no_integers(const char* relation, const char* column) {
  ereport(
      ERROR,
      (errcode(ERRCODE_UNDEFINED_COLUMN),
       errmsg("table \"%s\" has no stored integers in column \"%s\"", relation, column),
       errdetail("The column does not exist, is of another type, or is computed when it is read."),
       errhint("Pass the name of a column of type bigint, integer or smallint.")));
}

}  // namespace snowflake::pg
