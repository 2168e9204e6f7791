// Keeps roles that do not own the extension's sequences and tables from locking them against
// minting.
#pragma once

namespace snowflake::pg {

void install_lock_guard();

}  // namespace snowflake::pg
