// Contains the configured value of a setting, before the session defines the setting.
#pragma once

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

struct ConfiguredValue {
  const char* text;  // null: not configured
  GucSource source;
};

// Returns the configured value of a setting. REQUIRES that the session has not defined the setting
// yet.
inline ConfiguredValue configured_value(const config_generic& placeholder) {
  const char* const value = reinterpret_cast<const config_string&>(placeholder).reset_val;
  return {value == nullptr ? nullptr : pstrdup(value), placeholder.reset_source};
}

inline ConfiguredValue configured_value(const char* name) {
  ConfiguredValue configured{};
  if (GetConfigOption(name, true, false) == nullptr) return configured;
  for_each_setting([&](const config_generic& setting) {
    if (pg_strcasecmp(setting.name, name) == 0) configured = configured_value(setting);
  });
  return configured;
}

// Returns whether PostgreSQL ignored the configured value when the session defined the setting.
// PostgreSQL ignores invalid values, and values from a source that may not change the setting.
inline bool is_lost(const char* name, const ConfiguredValue& configured) {
  bool lost = false;
  if (configured.text == nullptr) return false;
  for_each_setting([&](const config_generic& setting) {
    lost |= strcmp(setting.name, name) == 0 && setting.reset_source != configured.source;
  });
  return lost;
}

}  // namespace snowflake::pg
