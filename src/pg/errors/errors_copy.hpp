// Messages about a database that last minted elsewhere.
#pragma once

#include "core/origin_fingerprint.hpp"

namespace snowflake::pg {

[[noreturn]] void error_copied(const Moved& moved);
// Only to the log: the session that detected it may belong to any role.
void warn_copied(const Moved& moved);
void log_copy_accepted(const Moved& moved);

}  // namespace snowflake::pg
