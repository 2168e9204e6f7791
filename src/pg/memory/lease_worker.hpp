// Lets the lease library take, extend and release a region.
#pragma once

namespace snowflake::pg {

// At server start: offers the port, loads the other library and registers its worker.
void install_lease();

}  // namespace snowflake::pg
