// Functions that attach.cpp and high_water.cpp share, to read and raise the mark.
#pragma once

#include "pg/memory/mark_hold.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// REQUIRES the content lock of the page: no session may read a mark in highest_ms() before the
// shard counters are raised to the mark.
void adopt_stored_mark(DatabaseState& state, int64_t stored_ms);

// Opens the mark with the lock mode that a session needs to write the mark. Returns null if the
// mark was dropped in the meantime. If the result is null, the session looks up all relations
// again.
Relation open_mark(Oid oid);

// Copies the published limit to the session. If the generation of the session's limit has ended,
// the function detaches the session from the mark and copies no limit. `more_is_written` means that
// a later mark is written but not flushed yet.
void take_limit(bool more_is_written);

}  // namespace snowflake::pg
