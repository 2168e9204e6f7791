// Defines the settings, and stops the server for an invalid one.
#pragma once

namespace snowflake::pg {

// Defines the settings and checks the configuration. PostgreSQL would warn and use a default. This
// raises an error instead, which stops the server start.
void define_settings();

}  // namespace snowflake::pg
