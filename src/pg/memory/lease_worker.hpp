#pragma once

namespace snowflake::pg {

// Called at server start. Publishes the functions of lease_port.hpp, loads the lease library, and
// registers the lease worker.
void install_lease();

}  // namespace snowflake::pg
