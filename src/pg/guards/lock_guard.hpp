// Prevents roles that do not own the extension's sequences and tables from locking them so that
// minting waits.
#pragma once

namespace snowflake::pg {

void install_lock_guard();

}  // namespace snowflake::pg
