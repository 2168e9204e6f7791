#pragma once

#include <cstdint>

namespace snowflake::pg {

[[noreturn]] void error_hashes_combined_otherwise(uint64_t shard, uint64_t placed);

// The argument `tables` lists tables that CASCADE would drop, separated by commas. The argument
// `more` is the number of further tables that CASCADE would drop.
[[noreturn]] void error_tables_partitioned(const char* tables, int more);

[[noreturn]] void error_node_without_origin();

[[noreturn]] void error_not_an_insert_trigger();
[[noreturn]] void error_set_id_arguments(int count);
[[noreturn]] void error_no_default(const char* relation, const char* column);
[[noreturn]] void error_no_such_column(const char* relation, const char* column);
[[noreturn]] void error_not_bigint(const char* relation, const char* column, const char* type);
[[noreturn]] void error_key_null(const char* relation, const char* column);
[[noreturn]] void error_key_is_no_id(const char* relation, const char* column, int64_t key);
[[noreturn]] void error_no_key_type(const char* relation, const char* column, const char* type);
[[noreturn]] void error_hash_ambiguous(const char* relation, const char* key);

// Errors of shard_for() and next_id_in()
[[noreturn]] void error_collation_unknown();
[[noreturn]] void error_collation_nondeterministic(unsigned collation);
[[noreturn]] void error_shards_range(const char* shards);
[[noreturn]] void error_shard_count(int64_t shards);
[[noreturn]] void error_shard_count(const char* shards);

// Errors of alter_shards()
[[noreturn]] void error_statement_not_known(const char* command);
[[noreturn]] void error_statement_leads_out(const char* name);
[[noreturn]] void error_statement_temporary(const char* name);
[[noreturn]] void error_statement_cascades();
[[noreturn]] void error_statement_concurrent(const char* command);

// Errors of functions that act as a table's owner
[[noreturn]] void error_may_not_act_as(const char* role);
[[noreturn]] void error_may_not_be_run(const char* statement);

// Raises an error for a function in SQL or PL/pgSQL, without the CONTEXT lines of internal
// functions. The arguments `detail` and `hint` may be null.
[[noreturn]] void error_of_routine(const char* state, const char* message, const char* detail,
                                   const char* hint);
[[noreturn]] void error_table_not_new(const char* table);

// Errors of functions that read the ids of a column
[[noreturn]] void error_no_rows_to_read(const char* relation);
[[noreturn]] void error_relation_gone(unsigned relation);
[[noreturn]] void error_holds_no_integers(const char* relation, const char* column);

}  // namespace snowflake::pg
