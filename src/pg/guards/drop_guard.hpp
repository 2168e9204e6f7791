#pragma once

namespace snowflake::pg {

// Prevents DROP EXTENSION ... CASCADE from dropping tables. If the partition key of a table uses
// snowflake.by_shard or shard_of(id), DROP EXTENSION with CASCADE would drop the table with all its
// rows.
void install_drop_guard();

}  // namespace snowflake::pg
