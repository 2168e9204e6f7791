// The glue around core/obstacle.hpp: facts that cost no wait, and what a call does about an
// obstacle. What is known only with a lock, attach() and `health` find out each in its own way.
#pragma once

#include "core/obstacle.hpp"
#include "pg/clock/wait.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// Of the server, its clock and its lease.
Facts facts_of_server();

// Acts on the first obstacle: raises its error, or waits for a lease or the clock, for a part of
// max_wait, and returns true: look at all anew. The mark, if one is given, is closed before.
// Returns false if there is no obstacle.
bool is_in_the_way(const Facts& facts, WaitBudget& budget, Relation mark = nullptr);

// Whether a mark is so far ahead that calls wait for it.
bool is_ahead_of_clock(int64_t mark_ms);

}  // namespace snowflake::pg
