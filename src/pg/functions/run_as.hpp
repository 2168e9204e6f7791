// Switches to another role, to use tables and functions of the role.
#pragma once

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// The state to restore after acting as another role. After an error, PostgreSQL restores the state.
struct Before {
  Oid user;
  int context;
  int settings;
};

// Until act_as_before(), the session has the rights of `role`, and `path` as search_path. If the
// current role does not have the rights of `role`, act_as() raises an error (42501).
Before act_as(Oid role, const char* path);
void act_as_before(const Before& before);

}  // namespace snowflake::pg
