#include "pg/server/rejected_setting.hpp"

namespace snowflake::pg {

constinit RejectedSetting rejected_setting{};

namespace {

// REQUIRES that the setting is not defined.
ConfiguredValue value_of(const config_generic& placeholder) {
  const char* const value = reinterpret_cast<const config_string&>(placeholder).reset_val;
  return {value == nullptr ? nullptr : pstrdup(value), placeholder.reset_source};
}

bool is_of_leases(const char* name) {
  return pg_strncasecmp(name, "snowflake.lease", 15) == 0 ||
         pg_strcasecmp(name, "snowflake.max_skew") == 0;
}

}  // namespace

void reject_setting(Blocker blocker, const char* name, const char* value) {
  if (rejected_setting.blocker != Blocker::none) return;
  rejected_setting = {blocker, MemoryContextStrdup(TopMemoryContext, name),
                      MemoryContextStrdup(TopMemoryContext, value)};
}

ConfiguredValue configured_value(const char* name) {
  ConfiguredValue configured{};
  if (GetConfigOption(name, true, false) == nullptr) return configured;
  for_each_setting([&](const config_generic& setting) {
    if (pg_strcasecmp(setting.name, name) == 0) configured = value_of(setting);
  });
  return configured;
}

void reject_if_lost(const char* name, const ConfiguredValue& configured) {
  if (configured.text == nullptr) return;
  for_each_setting([&](const config_generic& setting) {
    if (strcmp(setting.name, name) == 0 && setting.reset_source != configured.source)
      reject_setting(Blocker::setting_rejected, name, configured.text);
  });
}

void reject_unknown_settings() {
  for_each_setting([](const config_generic& setting) {
    if (!(setting.flags & GUC_CUSTOM_PLACEHOLDER) ||
        pg_strncasecmp(setting.name, "snowflake.", 10) != 0)
      return;
    const ConfiguredValue configured = value_of(setting);
    if (configured.text == nullptr || configured.source >= PGC_S_CLIENT) return;
    if (process_shared_preload_libraries_in_progress || !is_of_leases(setting.name))
      reject_setting(Blocker::setting_rejected, setting.name, configured.text);
    else if (*configured.text != '\0')
      reject_setting(Blocker::not_preloaded, setting.name, configured.text);
  });
}

}  // namespace snowflake::pg
