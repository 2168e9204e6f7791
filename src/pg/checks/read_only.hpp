#pragma once

namespace snowflake::pg {

// Returns the value of default_transaction_read_only that a new session of any role would get. SHOW
// default_transaction_read_only is not sufficient, because an old session does not receive later
// changes by ALTER DATABASE. The function is_read_only_by_default() ignores settings that ALTER
// ROLE gives to single roles.
bool is_read_only_by_default();

}  // namespace snowflake::pg
