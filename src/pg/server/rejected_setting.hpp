// Records the first configured value that a session rejected while the session loaded the library.
//
// If PostgreSQL rejects a value, PostgreSQL warns and uses the default, which could cause duplicate
// ids. An error would leave some settings of the session undefined. A session with a rejected value
// therefore does not use the extension's shared memory.
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

// Rejects every unknown setting of the configuration whose name begins with "snowflake.". REQUIRES
// that all settings are defined. Settings of leases are unknown if the library is not preloaded.
void reject_unknown_settings();

}  // namespace snowflake::pg
