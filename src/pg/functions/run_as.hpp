// Acting as another role, whose tables and functions are at hand.
#pragma once

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// What an act as another role goes back to. An error goes back by itself.
struct Before {
  Oid user;
  int context;
  int settings;
};

// From here to act_as_before() the session has the rights of `role`, and `path` as search_path. The
// current role must have the rights of `role`; otherwise this raises 42501.
Before act_as(Oid role, const char* path);
void act_as_before(const Before& before);

}  // namespace snowflake::pg
