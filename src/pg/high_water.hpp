// The durable high-water mark: no id of its time or later has been issued in this database.
//
// The mark is the value of sequence snowflake.high_water, in ms since 1970. A position may be
// claimed only below the *published limit*, a mark whose WAL record has been flushed. So whatever
// PostgreSQL recovers (a crash, a promotion, a backup) has a mark above every id that was ever
// returned, and loading lifts the words to it.
//
// Invariants
//  1. stored >= published limit, always: the page is written and flushed first.
//  2. The words are lifted to a mark before a limit that follows from it is published (release),
//     and a claimer reads the limit (acquire) before the word.
//  3. stored never goes down by our doing; where somebody lowered it, limits are withdrawn (a new
//     generation) and the mark is written again before anything is minted.
//  4. A mark is never written above now + max_lead + reserve, and never by a call that then fails.
#pragma once

#include <cstdint>

namespace snowflake::pg {

// Takes note of a mark that is being dropped, so that an extension created later in this server
// life starts above it even where nothing has been minted since the start.
void install_drop_hook();

// Takes hold of the database's mark: finds it and checks the seal, unless another session did both
// within a second, reads it, and lifts the words where this server life had not heard of it yet.
// Writes nothing.
void attach();

// Makes `position` mintable: publishes a limit above it, writing and flushing the mark if need be.
// The caller claims again afterwards; the session may have lost its hold.
void extend_limit(uint64_t position);

// Called with a position that was claimed: writes the mark ahead of time if that is due, and leaves
// the flush to the WAL writer. Never waits for a lock and never fails.
void extend_early(uint64_t position);

// Makes the mark at least `ms` and returns when that is durable. The words are the caller's affair.
void raise_mark(int64_t ms);

}  // namespace snowflake::pg
