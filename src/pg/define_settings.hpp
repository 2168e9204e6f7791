// Defines the settings, and stops the server for an invalid one. A session that loads the library
// itself does not mint if one is invalid.
#pragma once

namespace snowflake::pg {

// Defines the settings and checks the configuration. If a value is invalid, PostgreSQL would only
// warn and use the default. define_settings() raises an error instead, which stops the start of the
// server. If a session loads the library, define_settings() sets rejected_setting.
void define_settings();

}  // namespace snowflake::pg
