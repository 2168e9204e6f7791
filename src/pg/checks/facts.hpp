// The glue around core/blocker.hpp: gathers the facts that need no wait, and lets a call act on an
// blocker. Facts that need a lock are gathered separately by attach() (waits) and health() (does
// not wait).
#pragma once

#include "core/blocker.hpp"
#include "pg/clock/wait.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// The facts about the server, its clock and its lease.
Facts facts_of_server();
void gather_server_facts(Facts& facts);

// Acts on the first blocker. Raises its error, or waits for a lease or the clock for a part of
// max_wait and returns true: then gather all facts again. Closes the mark before, if one is given.
// Returns false without a blocker.
bool is_in_the_way(const Facts& facts, WaitBudget& budget, Relation mark = nullptr);

// Whether a mark is so far ahead that calls wait for it.
bool is_ahead_of_clock(int64_t mark_ms);

}  // namespace snowflake::pg
