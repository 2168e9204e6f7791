// default_transaction_read_only as the next session gets it. An older session, as that of an
// exporter, does not have what ALTER DATABASE has set since.
#pragma once

namespace snowflake::pg {

// By ALTER DATABASE, by ALTER ROLE ALL, or by the configuration of the server. Settings of single
// roles do not count.
bool is_read_only_by_default();

}  // namespace snowflake::pg
