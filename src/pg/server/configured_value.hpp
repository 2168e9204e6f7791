// Reads the configured value of a setting before the library registers the setting with PostgreSQL.
#pragma once

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

struct ConfiguredValue {
  const char* text;  // null: not configured
  GucSource source;
};

// Returns the configured value of a setting. REQUIRES that the library has not registered the
// setting with PostgreSQL yet.
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

// Returns whether PostgreSQL ignored the configured value when the library registered the setting.
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
