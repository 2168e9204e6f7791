// What is said of a database that last minted elsewhere.
#pragma once

#include "core/fingerprint.hpp"

namespace snowflake::pg {

[[noreturn]] void error_copied(const Moved& moved);
// To the log alone: the session that found it may be anybody's.
void warn_copied(const Moved& moved);
void log_copy_accepted(const Moved& moved);

}  // namespace snowflake::pg
