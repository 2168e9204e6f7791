// Prevents roles that do not own the extension's sequences and tables from locking the sequences
// and tables, because a lock would make minting wait.
#pragma once

namespace snowflake::pg {

void install_lock_guard();

}  // namespace snowflake::pg
