// Lets the lease library take, extend and release a region.
#pragma once

namespace snowflake::pg {

// Called at server start: publishes the port, loads the lease library and registers the lease
// worker.
void install_lease();

}  // namespace snowflake::pg
