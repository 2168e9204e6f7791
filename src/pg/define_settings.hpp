#pragma once

namespace snowflake::pg {

// define_settings() raises an error if a setting is invalid, which stops the start of the server.
// If a session loads the library, an invalid setting is stored in rejected_setting instead of
// raising an error.
void define_settings();

}  // namespace snowflake::pg
