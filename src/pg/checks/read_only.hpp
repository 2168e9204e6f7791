// Returns the value of default_transaction_read_only that a new session would get. An old session,
// for example of an exporter, does not receive later changes by ALTER DATABASE.
#pragma once

namespace snowflake::pg {

// The value is set by ALTER DATABASE, by ALTER ROLE ALL, or by the configuration of the server.
// Settings of single roles do not count.
bool is_read_only_by_default();

}  // namespace snowflake::pg
