// Contains the first configured value that PostgreSQL rejected while this session loaded the
// library.
//
// PostgreSQL replaces a rejected value of a setting by the default, which could cause duplicate
// ids. An error while the library is loaded would leave some settings undefined. A session with a
// rejected setting must not use the extension's shared memory.
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

// Rejects settings in the configuration that begin with "snowflake." but do not exist. REQUIRES
// that all settings are defined. If the library is not preloaded, the settings of leases are
// rejected like unknown settings.
void reject_unknown_settings();

}  // namespace snowflake::pg
