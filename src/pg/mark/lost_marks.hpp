// Records the marks that DROP EXTENSION, or the rollback of CREATE EXTENSION, removes. Ids below a
// removed mark may have been returned. So an extension that is created later in the server run
// starts above every removed mark.
#pragma once

#include <cstdint>

namespace snowflake::pg {

// Records the mark of the current database.
void record_lost_mark(int64_t mark_ms);

// Returns the greatest recorded mark of the current database, also of the current transaction, or
// 0.
int64_t lost_mark_ms();

// Called when a mark is dropped, also if the session minted no id under the mark.
void install_drop_hook();

// Called before a commit: records the mark that the transaction has dropped. Called at the end of
// the transaction: resets the state.
void keep_dropped_mark();
void reset_dropped_mark();

}  // namespace snowflake::pg
