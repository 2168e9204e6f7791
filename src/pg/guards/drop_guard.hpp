#pragma once

namespace snowflake::pg {

// Prevents DROP EXTENSION ... CASCADE from dropping tables. A table depends on the whole extension
// if its partition key uses snowflake.by_shard or shard_of(id). DROP EXTENSION with CASCADE would
// drop a table whose partition key uses the extension, together with its rows.
void install_drop_guard();

}  // namespace snowflake::pg
