// Records marks that DROP EXTENSION, or the rollback of CREATE EXTENSION, makes unreachable. The
// ids that they covered may have been returned. So an extension that is created later under this
// postmaster starts above them.
#pragma once

#include <cstdint>

namespace snowflake::pg {

// Records the mark of the current database.
void record_lost_mark(int64_t mark_ms);

// The greatest recorded mark of the current database, also from this transaction, or 0.
int64_t lost_mark_ms();

// Called when a mark is dropped, even if no id was minted under it here.
void install_drop_hook();

// Before a commit, records a mark that the transaction has dropped. At its end, resets the state.
void keep_dropped_mark();
void reset_dropped_mark();

}  // namespace snowflake::pg
