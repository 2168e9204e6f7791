// The durable high-water mark of a database is a time in milliseconds since 1970. Every returned id
// of the database has an earlier time than the high-water mark.
//
// The high-water mark is the value of sequence snowflake.high_water. Sessions mint ids only below
// the *published limit* of ids, which is a high-water mark whose WAL record is flushed. After a
// crash, a promotion or a restore, the stored high-water mark is above every returned id. The first
// session of a server run raises the shard counters to the high-water mark.
//
// Invariants
//
//  1. The stored high-water mark is never less than the limit up to which sessions may mint ids.
//     The mark is written and flushed before the limit is published.
//
//  2. Before a session stores the limit for new ids, the shard counters are raised to the
//     high-water mark of the earlier server run. Sessions store the limit for new ids with release
//     order, and load the limit with acquire order before they read a shard counter.
//
//  3. Only set_mark() lowers the stored high-water mark. If a role lowers the value of the sequence
//     snowflake.high_water, the second copy in the sequence (witness, sequence_page.hpp) still
//     contains the old high-water mark. If attach() finds that the value of snowflake.high_water
//     was lowered, attach() withdraws the limit up to which all sessions may mint ids. The next
//     write of the high-water mark replaces the lowered value of snowflake.high_water. When the
//     limit for new ids is withdrawn, its generation number changes. A session whose generation
//     number is out of date must call attach() before it mints.
//
//  4. The stored high-water mark is never raised above now + max_lead + reserve. For an id that is
//     refused, the stored high-water mark is not raised.
//
//  5. If the stored high-water mark is more than max_lead ahead of the clock, calls that mint wait
//     for the clock. While calls wait for the clock, no shard counter is raised to the mark, and no
//     mark or limit is written. A wrong mark has no effect on ids if set_mark() lowers the mark
//     before any shard counter is raised to the mark.
#pragma once

#include <cstdint>

#include "pg/server/wait_budget.hpp"

namespace snowflake::pg {

// Raises the limit up to which sessions may mint ids, so that the limit is above `position` (tick
// and sequence number). If necessary, extend_limit() first writes and flushes a new high-water
// mark. After extend_limit(), the caller must try again to mint. The limit up to which sessions may
// mint ids may have been withdrawn in the meantime.
void extend_limit(uint64_t position, WaitBudget& budget);

// Writes a new high-water mark if less than half of "snowflake.reserve" is left between the time of
// `position` and the stored mark. The WAL writer flushes the new high-water mark later. If a role
// has lowered the value of the sequence snowflake.high_water, extend_early() writes and flushes the
// old value again. The function extend_early() never waits for a lock and never fails. A session
// also calls extend_early() after the first id that follows a call of attach() or an error. A
// minted id shows that calls no longer fail, so extend_early() calls end_refusals()
// (statistics.hpp).
void extend_early(uint64_t position);

// Raises the high-water mark to at least `ms`, and returns when the mark is durable. REQUIRES that
// `ms` is at most max_lead plus one tick ahead of the clock. raise_mark() does not change the shard
// counters.
void raise_mark(int64_t ms);

// Invalidates the session's cached sequences after a relation was created, altered or dropped.
// InvalidOid means any relation.
void invalidate_relations(Oid relation);

}  // namespace snowflake::pg
