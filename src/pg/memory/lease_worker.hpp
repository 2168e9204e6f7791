#pragma once

namespace snowflake::pg {

// install_lease() is called at server start, if the library is preloaded.
void install_lease();

}  // namespace snowflake::pg
