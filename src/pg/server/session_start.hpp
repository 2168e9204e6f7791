// The time at which this session started, for an order of sessions that steps of the clock do not
// change.
#pragma once

#include "core/mint_origin.hpp"

namespace snowflake::pg {

// Returns the start of this session. For a parallel worker, the result is before all sessions,
// because the worker has the settings of the leader session.
SessionStart session_start();

}  // namespace snowflake::pg
