#pragma once

namespace snowflake::pg {

// Returns the value of default_transaction_read_only that a new session of any role would get.
// Running sessions do not receive later changes by ALTER DATABASE. Settings of single roles do not
// count.
bool is_read_only_by_default();

}  // namespace snowflake::pg
