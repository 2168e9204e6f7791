#pragma once

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// Contains the role and settings that the session had before act_as(). The function act_as_before()
// restores the role and settings. After an error in the statement, PostgreSQL restores the role and
// the settings.
struct Before {
  Oid user;
  int context;
  int settings;
};

// Switches the session to the rights of `role`, and sets search_path to `path`. Raises an error
// (42501) if the current role does not have the rights of `role`.
Before act_as(Oid role, const char* path);
void act_as_before(const Before& before);

}  // namespace snowflake::pg
