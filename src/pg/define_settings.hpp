#pragma once

namespace snowflake::pg {

// Defines the settings and checks the configuration. A wrong value raises an error, which stops the
// start of the server. If a session loads the library, a wrong value is recorded in
// rejected_setting instead.
void define_settings();

}  // namespace snowflake::pg
