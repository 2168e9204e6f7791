#pragma once

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// Calls `visit(database, value)` for each database for which ALTER DATABASE sets the setting
// `name`. For ALTER ROLE ALL SET, `database` is InvalidOid.
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
