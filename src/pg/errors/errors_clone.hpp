#pragma once

#include "core/origin_fingerprint.hpp"

namespace snowflake::pg {

[[noreturn]] void error_cloned(const Moved& moved);
// The warning is written only to the server log, because the session that detected the clone may
// belong to any role.
void warn_cloned(const Moved& moved);
void log_clone_accepted(const Moved& moved);

}  // namespace snowflake::pg
