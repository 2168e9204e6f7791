// Records the marks that DROP EXTENSION, or the rollback of CREATE EXTENSION, removes. The ids
// below these marks may have been returned. So an extension that is created later in this server
// run starts above these marks.
#pragma once

#include <cstdint>

namespace snowflake::pg {

// Records the mark of the current database.
void record_lost_mark(int64_t mark_ms);

// The greatest recorded mark of the current database, also from this transaction, or 0.
int64_t lost_mark_ms();

// Called when a mark is dropped, even if this session minted no id under the mark.
void install_drop_hook();

// Called before a commit: records the mark that the transaction has dropped. Called at the end of
// the transaction: resets the state.
void keep_dropped_mark();
void reset_dropped_mark();

}  // namespace snowflake::pg
