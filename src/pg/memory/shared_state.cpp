#include "pg/memory/shared_state.hpp"

#include <algorithm>

#include "pg/server/settings.hpp"

namespace snowflake::pg {

constinit SharedState* shared_state = nullptr;
constinit DatabaseState* database_states = nullptr;
constinit Shard* all_shard_counters = nullptr;

uint32_t shard_counter_count() {
  return std::min(layout.shards(), kMaxShardCounters);
}

}  // namespace snowflake::pg
