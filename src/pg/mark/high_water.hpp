// The durable high-water mark of a database, in milliseconds since 1970. All returned ids of the
// database have earlier times than the mark.
//
// The mark is the value of sequence snowflake.high_water. Sessions claim positions only below the
// *published limit*, which is a mark whose WAL record is flushed. After a crash, a promotion or a
// restore, the mark is therefore above every returned id. The first session of a server run raises
// the shard counters to the mark.
//
// Invariants
//  1. The stored mark is never less than the published limit, because the mark is written and
//     flushed before the limit is published.
//  2. The shard counters are raised to the mark before a limit is published (release). A claim
//     reads the limit (acquire) before the counter.
//  3. Only set_mark() lowers the stored mark. If a role lowers the sequence's value, the witness
//     (sequence_page.hpp) still contains the old value. A session that finds a lower value
//     withdraws the limit (a new generation) and writes the old value again.
//  4. A mark is never written above now + max_lead + reserve, and never for an id that is refused.
//  5. If the stored mark is more than max_lead ahead of the clock, the stored mark is not adopted,
//     and no mark or limit is written. Calls wait until the clock reaches the mark. If set_mark()
//     lowers the mark before that time, the high value has had no effect.
#pragma once

#include <cstdint>

#include "pg/server/wait_budget.hpp"

namespace snowflake::pg {

// Publishes a limit above `position`, after writing and flushing the mark if necessary. The caller
// must claim again afterwards, and the session may be detached from the mark.
void extend_limit(uint64_t position, WaitBudget& budget);

// Writes the next mark if the next mark is due for a claimed position. The flush is left to the WAL
// writer, except for a mark that corrects a lowered value. extend_early() never waits for a lock
// and never fails. The first claim after an attach or a failed call must also call extend_early(),
// which records that the database mints.
void extend_early(uint64_t position);

// Raises the mark to at least `ms`, and returns when the mark is durable. REQUIRES that `ms` is at
// most max_lead plus a tick ahead of the clock. raise_mark() does not change the shard counters.
void raise_mark(int64_t ms);

// Invalidates the session's cached sequences after a relation was created, altered or dropped.
// InvalidOid means any relation.
void invalidate_relations(Oid relation);

}  // namespace snowflake::pg
