// Functions that attach.cpp and high_water.cpp share.
#pragma once

#include "pg/memory/mark_hold.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// REQUIRES the content lock of the mark's page. Other sessions must not read a mark in highest_ms()
// before the shard counters are raised to the mark.
void adopt_stored_mark(DatabaseState& state, int64_t stored_ms);

// Opens the mark with the lock mode that a write of the mark needs. Returns null if the mark was
// dropped in the meantime. In this case the session must look up all sequences again.
Relation open_mark(Oid oid);

// Copies the published limit to the session. If the session's generation has ended, take_limit()
// detaches the session from the mark. `more_is_written` means that a later mark is written but not
// flushed yet.
void take_limit(bool more_is_written);

}  // namespace snowflake::pg
