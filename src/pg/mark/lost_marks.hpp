// Records the marks that DROP EXTENSION, or a rollback of CREATE EXTENSION, removes. Ids below a
// removed mark may have been returned. An extension that is created later in the server run
// therefore starts above every removed mark.
#pragma once

#include <cstdint>

namespace snowflake::pg {

void record_lost_mark(int64_t mark_ms);

// Returns the greatest removed mark of the current database, including the current transaction, or
// 0.
int64_t lost_mark_ms();

// Records a dropped mark even if the session has minted no id.
void install_drop_hook();

// keep_dropped_mark() records the mark that the transaction has dropped, before a commit.
// reset_dropped_mark() runs at the end of each transaction.
void keep_dropped_mark();
void reset_dropped_mark();

}  // namespace snowflake::pg
