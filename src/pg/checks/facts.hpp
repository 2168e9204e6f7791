// Gathers the facts that need no lock and that decide whether the database can mint ids
// (core/blocker.hpp). The functions attach() and health() gather the facts for which a lock is
// needed, such as the high-water mark. The function attach() waits for a lock, but health() does
// not.
#pragma once

#include "core/blocker.hpp"
#include "pg/clock/wait.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

Facts facts_of_server();
void gather_server_facts(Facts& facts);

// Raises the error of the first blocker (state that prevents minting), or waits for a lease or the
// clock. Returns true after a wait for a lease or the clock. After a wait, the caller must fill
// `facts` again, because `facts` is out of date. The function is_in_the_way() closes `mark` (the
// sequence snowflake.high_water) and releases its lock before a wait or an error.
bool is_in_the_way(const Facts& facts, WaitBudget& budget, Relation mark = nullptr);

// Returns whether a high-water mark is so far ahead of the clock that minting must wait.
bool is_ahead_of_clock(int64_t mark_ms);

}  // namespace snowflake::pg
