// What ends a backend's knowledge: the end of a transaction, and changes of the extension's
// sequences by anybody.
#pragma once

namespace snowflake::pg {

// Call before relying on anything that is remembered between calls.
void watch_session_events();

}  // namespace snowflake::pg
