#pragma once

namespace snowflake::pg {

// Returns the value of default_transaction_read_only that a new session of any role would get. SHOW
// is not sufficient, because an old session does not receive later changes by ALTER DATABASE.
// Settings that ALTER ROLE gives to single roles do not count.
bool is_read_only_by_default();

}  // namespace snowflake::pg
