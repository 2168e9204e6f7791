// The start time of a session orders sessions even if the clock is stepped.
#pragma once

#include "core/mint_origin.hpp"

namespace snowflake::pg {

// In a parallel worker, the returned time is before all sessions, because the worker has the
// leader's settings.
SessionStart session_start();

}  // namespace snowflake::pg
