// Reads the settings of ALTER DATABASE ... SET and ALTER ROLE ALL SET.
#pragma once

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// Calls `visit(database, value)` for each database that has the setting. ALTER ROLE ALL passes
// InvalidOid as the database.
void for_each_database_setting(const char* name,
                               void (*visit)(Oid database, const char* value, void* argument),
                               void* argument);
template <class Visit>
void for_each_database_setting(const char* name, Visit visit) {
  for_each_database_setting(
      name,
      [](Oid database, const char* value, void* argument) {
        (*static_cast<Visit*>(argument))(database, value);
      },
      &visit);
}

}  // namespace snowflake::pg
