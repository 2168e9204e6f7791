// When this session started, in an order that steps of the clock do not change.
#pragma once

#include "core/mint_origin.hpp"

namespace snowflake::pg {

// Before everything for a parallel worker, which has the settings of its leader.
SessionStart session_start();

}  // namespace snowflake::pg
