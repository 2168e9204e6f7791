#include "pg/server/rejected_setting.hpp"

#include "pg/server/configured_value.hpp"

namespace snowflake::pg {

constinit RejectedSetting rejected_setting{};

namespace {

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

void reject_unknown_settings() {
  for_each_setting([](const config_generic& setting) {
    if (!(setting.flags & GUC_CUSTOM_PLACEHOLDER) ||
        pg_strncasecmp(setting.name, "snowflake.", 10) != 0)
      return;
    const ConfiguredValue configured = configured_value(setting);
    if (configured.text == nullptr || configured.source >= PGC_S_CLIENT) return;
    if (process_shared_preload_libraries_in_progress || !is_of_leases(setting.name))
      reject_setting(Blocker::setting_rejected, setting.name, configured.text);
    else if (*configured.text != '\0')
      reject_setting(Blocker::not_preloaded, setting.name, configured.text);
  });
}

}  // namespace snowflake::pg
