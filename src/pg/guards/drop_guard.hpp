// Prevents DROP EXTENSION ... CASCADE from dropping tables.
#pragma once

namespace snowflake::pg {

// Installs the hook. A table partitioned by snowflake.by_shard, or by an expression such as
// shard_of(id), depends on the extension as a whole. So CASCADE would drop the table and its rows.
// (If the default of a column mints, CASCADE would drop only the default.)
void install_drop_guard();

}  // namespace snowflake::pg
