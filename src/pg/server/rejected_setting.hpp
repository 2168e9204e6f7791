// The configured values that a session did not accept when the session loaded the library.
//
// If a session does not accept a configured value, PostgreSQL uses the default with a warning. A
// default region, for example, could cause duplicates. An error would leave the settings of the
// session half defined. So the session records the first rejected value, and refuses to use the
// shared memory.
#pragma once

#include "core/blocker.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

struct RejectedSetting {
  Blocker blocker;  // none, setting_rejected, or not_preloaded
  const char* name;
  const char* value;
};
extern RejectedSetting rejected_setting;

void reject_setting(Blocker blocker, const char* name, const char* value);

// Called when all settings are defined. Rejects every unknown setting that begins with
// "snowflake.". The settings of leases are defined only if the library is preloaded. Values that a
// client or SET gives to unknown settings are not rejected.
void reject_unknown_settings();

}  // namespace snowflake::pg
