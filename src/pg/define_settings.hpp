// Defines the settings, and stops the server for an invalid one. A session that loads the library
// itself does not mint if one is invalid.
#pragma once

namespace snowflake::pg {

// Defines the settings and checks the configuration. PostgreSQL would warn and use a default. This
// raises an error instead, which stops the server start; or it sets rejected_setting.
void define_settings();

}  // namespace snowflake::pg
