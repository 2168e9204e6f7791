#include "pg/pending_counters.hpp"

namespace snowflake::pg {

constinit PendingCounters pending{};
constinit uint64_t highest_flushed_id = 0;

}  // namespace snowflake::pg
