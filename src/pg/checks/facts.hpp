// Gathers the facts for core/blocker.hpp that need no wait, and lets a call wait or fail. Facts
// that need a lock are gathered by attach(), which waits, and by health(), which does not wait.
#pragma once

#include "core/blocker.hpp"
#include "pg/clock/wait.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

Facts facts_of_server();
void gather_server_facts(Facts& facts);

// Raises the error of the first blocker, or waits for the lease or the clock. Returns true after a
// wait of at most a part of max_wait, and the caller must then gather all facts again. Returns
// false if no blocker exists. is_in_the_way() closes an open mark before the wait or the error.
bool is_in_the_way(const Facts& facts, WaitBudget& budget, Relation mark = nullptr);

// Returns whether a mark is so far ahead of the clock that calls must wait.
bool is_ahead_of_clock(int64_t mark_ms);

}  // namespace snowflake::pg
