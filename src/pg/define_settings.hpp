// Defines the settings. If a setting is invalid, the server does not start. If a session loads the
// library and a setting is invalid, the session does not mint.
#pragma once

namespace snowflake::pg {

// Defines the settings and checks the configuration. If a value is invalid, PostgreSQL would only
// warn and use the default. define_settings() raises an error, which stops the start of the server.
// If a session loads the library, define_settings() sets rejected_setting.
void define_settings();

}  // namespace snowflake::pg
