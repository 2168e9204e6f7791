// The start times of sessions are measured since boot, so a step of the wall clock does not change
// the order of the start times.
#pragma once

#include "core/mint_origin.hpp"

namespace snowflake::pg {

// Returns the start time of the session, or 0 in a parallel worker. A database uses the region and
// shards of the session that started last. A parallel worker returns 0, because it has the settings
// of its leader, which may be out of date.
SessionStart session_start();

}  // namespace snowflake::pg
