// When this session started, in an order that steps of the clock do not change.
#pragma once

#include "core/mint_origin.hpp"

namespace snowflake::pg {

// Returns when this session started. For a parallel worker, the result is before all sessions,
// because the worker has the settings of its leader.
SessionStart session_start();

}  // namespace snowflake::pg
