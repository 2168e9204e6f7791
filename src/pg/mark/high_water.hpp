// The durable high-water mark of a database: all issued ids of the database have earlier times than
// the mark.
//
// The mark is the value of sequence snowflake.high_water, in ms since 1970. A position may be
// claimed only below the *published limit*, a mark whose WAL record has been flushed. So after any
// recovery (a crash, a promotion, a backup) the mark is above every returned id. The first session
// of a server run adopts the mark: the session raises the shard counters to the mark.
//
// Invariants
//  1. The stored mark is never less than the published limit, because the page is written and
//     flushed first.
//  2. A limit follows from a mark. The counters are raised to the mark before the limit is
//     published (release). A claim reads the limit (acquire) before the counter.
//  3. Only set_mark() lowers stored. If a role lowers the sequence's value, the witness
//     (sequence_page.hpp) still contains the old value. If the witness is greater than the value, a
//     session withdraws the limit (a new generation) and writes the old value again.
//  4. A mark is never written above now + max_lead + reserve, and never for an id that is refused.
//  5. If the stored mark is more than max_lead ahead of the clock, the stored mark is not adopted,
//     and no mark or limit is written. Calls wait until the clock reaches the mark. If set_mark()
//     lowers the mark before that time, the high value has had no effect.
#pragma once

#include <cstdint>

#include "pg/server/wait_budget.hpp"

namespace snowflake::pg {

// Makes `position` available: writes and flushes the mark if necessary, and publishes a limit above
// `position`. After this call, the caller must claim again. The session may be detached from the
// mark.
void extend_limit(uint64_t position, WaitBudget& budget);

// Called with a claimed position. If the next mark is due, writes the next mark and leaves the
// flush to the WAL writer. If the mark was lowered, flushes the corrected mark. Never waits for a
// lock and never fails. The first claim after an attach or a failed call also calls this function,
// to record that the database mints.
void extend_early(uint64_t position);

// Raises the mark to at least `ms`, and returns when the mark is durable. `ms` must be at most
// max_lead plus a tick ahead of the clock. Does not change the shard counters.
void raise_mark(int64_t ms);

// Invalidates the session's cached sequences: a relation was dropped, altered or created.
// InvalidOid means any relation.
void invalidate_relations(Oid relation);

}  // namespace snowflake::pg
