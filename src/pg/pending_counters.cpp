#include "pg/pending_counters.hpp"

namespace snowflake::pg {

constinit PendingCounters pending{};

}  // namespace snowflake::pg
