#include "pg/memory/database_counters.hpp"

#include <new>

namespace snowflake::pg {

constinit Statistics* database_statistics = nullptr;

void clear_statistics(int slot) {
  new (&database_statistics[slot]) Statistics{};
}

}  // namespace snowflake::pg
