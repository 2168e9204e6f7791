// The durable high-water mark: no id of its time or later has been issued in this database.
//
// The mark is the value of sequence snowflake.high_water, in ms since 1970. A position may be
// claimed only below the *published limit*, a mark whose WAL record has been flushed. So after any
// recovery (a crash, a promotion, a backup) the mark is above every returned id. The first session
// adopts it: it raises the shard counters to it.
//
// Invariants
//  1. stored >= published limit, always: the page is written and flushed first.
//  2. The counters are raised to a mark before a limit that follows from it is published (release).
//     A claim reads the limit (acquire) before the counter.
//  3. Only set_mark() lowers stored. If a role lowers the sequence's value, the witness
//     (sequence_page.hpp) still has the old one. Then the limit is withdrawn (a new generation),
//     and the value is written again.
//  4. A mark is never written above now + max_lead + reserve, and never for an id that is refused.
//  5. A stored mark more than max_lead ahead of the clock is not adopted, and no mark or limit is
//     written in addition to it. Calls wait until the clock reaches it. If it is lowered again, the
//     high value has no effect.
#pragma once

#include <cstdint>

#include "pg/memory/mark_hold.hpp"
#include "pg/clock/wait.hpp"

namespace snowflake::pg {

// Makes `position` mintable: publishes a limit above it, and before that writes and flushes the
// mark if necessary. The caller claims again afterwards; the hold may be lost.
void extend_limit(uint64_t position, WaitBudget& budget);

// Called with a claimed position: writes the mark ahead if that is due, and leaves the flush to the
// WAL writer. If the mark was lowered, it flushes itself. It never waits for a lock and never
// fails. The first claim after an attach or a refused call also calls it, to record that the
// database mints.
void extend_early(uint64_t position);

// Raises the mark to at least `ms`, and returns when that is durable. `ms` is at most max_lead and
// a tick ahead of the clock. It does not change the counters.
void raise_mark(int64_t ms);

// Invalidates the session's cached sequences: a relation was dropped, altered or created.
// InvalidOid means any relation.
void invalidate_relations(Oid relation);

}  // namespace snowflake::pg
