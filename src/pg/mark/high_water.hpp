// The durable high-water mark: no id of its time or later has been issued in this database.
//
// The mark is the value of sequence snowflake.high_water, in ms since 1970. A position may be
// claimed only below the *published limit*, a mark whose WAL record has been flushed. So whatever
// PostgreSQL recovers (a crash, a promotion, a backup) has a mark above every id that was ever
// returned, and the first session to come adopts it: it raises the words to it.
//
// Invariants
//  1. stored >= published limit, always: the page is written and flushed first.
//  2. The words are raised to a mark before a limit that follows from it is published (release),
//     and a claimer reads the limit (acquire) before the word.
//  3. stored never goes down but by set_mark(). If somebody lowers the sequence's value, the
//     witness beside it (sequence_page.hpp) still says what was written; the limit is withdrawn (a
//     new generation) and the value is written again.
//  4. A mark is never written above now + max_lead + reserve, and never for an id that is refused.
//  5. A stored mark more than max_lead ahead of the clock is not adopted, and nothing is written
//     or published beside it: calls wait until the clock is there. If it is lowered again, nothing
//     remembers the high value.
#pragma once

#include <cstdint>

#include "pg/memory/mark_hold.hpp"
#include "pg/clock/wait.hpp"

namespace snowflake::pg {

// Makes `position` mintable: publishes a limit above it, writing and flushing the mark if need be.
// The caller claims again afterwards; the hold may have been lost.
void extend_limit(uint64_t position, WaitBudget& budget);

// Called with a position that was claimed: writes the mark ahead of time if that is due, and leaves
// the flush to the WAL writer; but where it finds the mark lowered, it flushes. Never waits for a
// lock and never fails. After a hold was taken, or a call refused, it is called with the first
// claim and notes that the database mints.
void extend_early(uint64_t position);

// Makes the mark at least `ms`, which is no more than max_lead and a tick ahead of the clock, and
// returns when that is durable. The words are not touched.
void raise_mark(int64_t ms);

// A relation was dropped, altered or created, InvalidOid: any. What the session knows of the
// extension's sequences may be over.
void doubt_relations(Oid relation);

}  // namespace snowflake::pg
