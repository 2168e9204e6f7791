// Prevents roles other than the owner from locking the extension's tables and sequences, because
// minting would wait.
#pragma once

namespace snowflake::pg {

void install_lock_guard();

}  // namespace snowflake::pg
