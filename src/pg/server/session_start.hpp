// The start time of this session, which orders sessions even if the clock is stepped.
#pragma once

#include "core/mint_origin.hpp"

namespace snowflake::pg {

// Returns a time before all sessions in a parallel worker, because the worker has the settings of
// its leader.
SessionStart session_start();

}  // namespace snowflake::pg
