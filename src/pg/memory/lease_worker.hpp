#pragma once

namespace snowflake::pg {

// Called at server start, if the library is preloaded.
void install_lease();

}  // namespace snowflake::pg
