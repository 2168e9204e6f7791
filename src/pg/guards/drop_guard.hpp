#pragma once

namespace snowflake::pg {

// Prevents DROP EXTENSION ... CASCADE from dropping tables. A table depends on the extension as a
// whole if its partition key contains snowflake.by_shard or shard_of(id). CASCADE would drop such a
// table with its rows.
void install_drop_guard();

}  // namespace snowflake::pg
