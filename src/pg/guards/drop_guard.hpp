// DROP EXTENSION ... CASCADE must not take tables with it.
#pragma once

namespace snowflake::pg {

// A table partitioned by snowflake.by_shard, or by an expression such as shard_of(id), depends on
// the extension as a whole: CASCADE would drop it with its rows, where a column whose default mints
// only loses the default. From now on that is refused.
void install_drop_guard();

}  // namespace snowflake::pg
