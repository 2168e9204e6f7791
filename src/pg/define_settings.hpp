// The settings as postgresql.conf has them, and why a wrong one stops the server.
#pragma once

namespace snowflake::pg {

// Defines the settings and checks what the configuration says of them. Raises an error, and so
// stops the server start, where PostgreSQL itself would fall back to the default with a warning.
void define_settings();

}  // namespace snowflake::pg
