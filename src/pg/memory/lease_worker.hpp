#pragma once

namespace snowflake::pg {

// Called at server start. Publishes the port for the lease library, loads the library and registers
// the lease worker.
void install_lease();

}  // namespace snowflake::pg
