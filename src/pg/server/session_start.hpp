// The start times of sessions show which session started last, even if the clock is stepped.
#pragma once

#include "core/mint_origin.hpp"

namespace snowflake::pg {

// In a parallel worker, session_start() returns a time before the start of all sessions, so that
// the worker cannot change the database's region and shards. A parallel worker has the settings of
// its leader, which may be out of date.
SessionStart session_start();

}  // namespace snowflake::pg
