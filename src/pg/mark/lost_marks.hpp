// Records high-water marks that DROP EXTENSION, or a rollback of CREATE EXTENSION, removes. Ids
// below a removed high-water mark may already have been returned. The next CREATE EXTENSION in the
// same server run stores a high-water mark that is not below any removed mark.
#pragma once

#include <cstdint>

namespace snowflake::pg {

void record_lost_mark(int64_t mark_ms);

// Returns the greatest high-water mark that this server run has recorded for the current database,
// or 0.
int64_t lost_mark_ms();

// If a session runs DROP EXTENSION snowflake, the DROP hook records the value of the dropped
// high-water mark.
void install_drop_hook();

// Before a commit, keep_dropped_mark() records the high-water mark that a DROP command of the
// transaction has removed. At the end of each transaction, reset_dropped_mark() clears the
// session's variable that contains the dropped high-water mark.
void keep_dropped_mark();
void reset_dropped_mark();

}  // namespace snowflake::pg
