#include "pg/memory/database_counters.hpp"

#include <new>

namespace snowflake::pg {

constinit Statistics* database_statistics = nullptr;

void clear_statistics(int place) {
  new (&database_statistics[place]) Statistics{};
}

}  // namespace snowflake::pg
