#pragma once

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// The state to restore after acting as another role. PostgreSQL restores the state after an error.
struct Before {
  Oid user;
  int context;
  int settings;
};

// Until act_as_before(), the session has the rights of `role`, and `path` as search_path. Raises an
// error (42501) if the current role does not have the rights of `role`.
Before act_as(Oid role, const char* path);
void act_as_before(const Before& before);

}  // namespace snowflake::pg
