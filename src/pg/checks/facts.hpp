// The glue around core/blocker.hpp: gathers the facts that need no wait, and lets a call wait or
// fail because of a blocker. Facts that need a lock are gathered separately: attach() waits for the
// lock, and health() does not wait.
#pragma once

#include "core/blocker.hpp"
#include "pg/clock/wait.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// The facts about the server, its clock and its lease.
Facts facts_of_server();
void gather_server_facts(Facts& facts);

// Acts on the first blocker. Raises the blocker's error, or waits for a lease or the clock for a
// part of max_wait and returns true. If the result is true, the caller must gather all facts again.
// If the caller passes an open mark, the function closes the mark before the function waits or
// raises the error. Returns false without a blocker.
bool is_in_the_way(const Facts& facts, WaitBudget& budget, Relation mark = nullptr);

// Whether a mark is so far ahead of the clock that calls must wait.
bool is_ahead_of_clock(int64_t mark_ms);

}  // namespace snowflake::pg
