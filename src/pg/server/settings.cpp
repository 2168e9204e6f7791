#include "pg/server/settings.hpp"

#include <cstring>

namespace snowflake::pg {

constinit Layout layout{};
constinit int own_region = 0;
constinit const char* lease_conninfo = "";
constinit ShardSet leased_regions{};
constinit int lease_ms = 0;
constinit int max_skew_ms = 10000;
constinit ShardSet owned_shards{};
constinit const char* owned_shards_text = nullptr;
constinit int max_databases = 64;
constinit int max_lead_ms = 1000;
constinit int reserve_ms = 1000;
constinit int max_forward_jump_s = 60;
constinit int sequence_spread = 0;
constinit double max_clock_error_ms = 100;
constinit double clock_error_ms = -1;
constinit bool use_tsc = true;
constinit int on_copy = static_cast<int>(OnCopy::warn);
constinit int on_unsynchronized = static_cast<int>(Unsynchronized::mint);
constinit int default_shard = -1;
constinit int max_wait_ms = 2000;
constinit bool commit_waits = false;
constinit uint64_t lead_ticks = 0;
constinit uint64_t reserve_ticks = 0;
constinit bool citus_preloaded = false;

bool refuse_copies() {
  return static_cast<OnCopy>(on_copy) == OnCopy::refuse;
}

Unsynchronized when_unsynchronized() {
  return static_cast<Unsynchronized>(on_unsynchronized);
}

bool owns_everything() {
  return own_region == 0 && strcmp(owned_shards_text, "all") == 0;
}

bool citus_is_preloaded() {
  return citus_preloaded;
}

}  // namespace snowflake::pg
