// The layout of the memory that the server's processes share.
#pragma once

#include "pg/memory/shared_state.hpp"

namespace snowflake::pg {

// Requests the memory after the postmaster has read its configuration.
void install_shared_state(void (*start_clock_watch)(ClockWatch&));

}  // namespace snowflake::pg
