// Roles that do not own the extension's sequences and tables could lock them, and minting would
// wait. The lock guard prevents this.
#pragma once

namespace snowflake::pg {

void install_lock_guard();

}  // namespace snowflake::pg
