// The start times of sessions show which session started last, even if the clock is stepped.
#pragma once

#include "core/mint_origin.hpp"

namespace snowflake::pg {

// In a parallel worker, session_start() returns a time before the start of all sessions, because
// the worker has the leader's settings.
SessionStart session_start();

}  // namespace snowflake::pg
