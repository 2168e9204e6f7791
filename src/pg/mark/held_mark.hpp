// Functions that both attach.cpp and high_water.cpp use to read and extend the mark.
#pragma once

#include "pg/memory/mark_hold.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// REQUIRES the page's content lock: no session may see highest_ms() cover a mark before the
// counters are raised to it.
void adopt_stored_mark(DatabaseState& state, int64_t stored_ms);

// Opens the mark with the lock of its writers. Null if it was dropped in the meantime: then the
// session looks everything up again.
Relation open_mark(Oid oid);

// Takes the published limit into the session's hold, or gives the hold up if it is over.
// `more_is_written`: a later mark is on its way to the disk.
void take_limit(bool more_is_written);

}  // namespace snowflake::pg
