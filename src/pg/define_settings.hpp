#pragma once

namespace snowflake::pg {

// define_settings() raises an error if a setting is invalid, which stops the start of the server.
// If a session loads the library, define_settings() stores an invalid setting in rejected_setting,
// and raises no error.
void define_settings();

}  // namespace snowflake::pg
