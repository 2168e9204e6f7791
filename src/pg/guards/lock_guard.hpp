// Prevents roles that do not own the extension's tables and sequences from locking them. Such a
// lock would make minting wait.
#pragma once

namespace snowflake::pg {

void install_lock_guard();

}  // namespace snowflake::pg
