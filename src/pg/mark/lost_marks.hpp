// Marks that a DROP EXTENSION, or the rollback of its creation, makes unreachable. What they
// covered may have been returned, so an extension created later under this postmaster
// starts above them.
#pragma once

#include <cstdint>

namespace snowflake::pg {

// Takes note of the mark of the current database.
void note_lost_mark(int64_t mark_ms);

// The greatest one of the current database, also of this transaction, or 0.
int64_t lost_mark_ms();

// Sees a mark being dropped, whether or not anything was minted under it here.
void install_drop_hook();

// Before a commit: takes note of a mark that the transaction has dropped. At its end: forgets it.
void keep_dropped_mark();
void forget_dropped_mark();

}  // namespace snowflake::pg
