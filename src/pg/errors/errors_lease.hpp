#pragma once

#include <cstdint>

#include "core/lease_memory.hpp"
#include "core/blocker.hpp"

namespace snowflake::pg {

[[noreturn]] void error_lease_settings(const char* detail, const char* hint);

// Raises an error because the server has leased no region, or because the lease worker is not
// running. The argument `said` is the last message of the lease worker or the lease server.
[[noreturn]] void error_no_region(Blocker blocker, const char* said);
[[noreturn]] void error_region_begins_later(int32_t region, int64_t begin_ms, int64_t clock_ms);
[[noreturn]] void error_lease_ended(const LeaseView& lease, int64_t id_ms, int64_t clock_ms,
                                    const char* said);
[[noreturn]] void error_beyond_lease(int64_t ms, const LeaseView& lease);
[[noreturn]] void error_fleet_left(int64_t fleet);
[[noreturn]] void error_other_fleet(int64_t remembered, int64_t present);

}  // namespace snowflake::pg
