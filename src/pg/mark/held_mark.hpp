#pragma once

#include "pg/memory/mark_hold.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// REQUIRES the content lock on the page of the high-water mark. Other sessions must not see a new
// high-water mark in highest_ms() before the shard counters are raised to the mark.
void adopt_stored_mark(DatabaseState& state, int64_t stored_ms);

// Opens the sequence snowflake.high_water with the lock mode that a write needs. Returns null if
// the sequence snowflake.high_water was dropped. If open_mark() returns null, the session must look
// up the extension's sequences again.
Relation open_mark(Oid oid);

// Reads the limit up to which sessions may mint ids, and stores the limit in `hold`, a variable of
// the session. If the limit up to which sessions may mint ids is no longer valid, take_limit()
// makes the session call attach() before it mints again. The argument `more_is_written` means that
// a later high-water mark is written but not flushed yet.
void take_limit(bool more_is_written);

}  // namespace snowflake::pg
