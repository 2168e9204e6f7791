// A sequence's stored value, read and raised in place.
//
// Not nextval() and setval(): those take a transaction id, so that COMMIT flushes and waits for a
// synchronous standby, keep a lock to the end of the transaction, and give no LSN. The page that is
// left behind is one that they can go on with.
//
// The form of a sequence's page is PostgreSQL's internal: one tuple, with a magic number in the
// page's special space. Every open() checks that, and CREATE EXTENSION checks that SQL sees what
// was written here and the other way round, so a version that changed it fails loudly and at once.
#pragma once

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// The sequence's only page, pinned and with its content lock held until close(). No destructor: an
// error releases both, as it does everywhere in PostgreSQL.
//
// The mark is stored twice: as the sequence's value, which SQL shows and a dump carries, and behind
// it in the same tuple, as the *witness*. A role with UPDATE on the sequence (pg_write_all_data has
// it on all) can change the value with setval(); the witness goes along unchanged, in setval()'s
// own WAL record and in the new storage of ALTER SEQUENCE, for PostgreSQL treats the tuple as a
// whole. So a value that was lowered decides nothing.
struct SequencePage {
  Buffer buffer;

  static SequencePage open(Relation relation, int buffer_lock_mode);
  // Waits for nobody: false where another session has the page locked.
  static bool try_open(Relation relation, SequencePage* page);
  // The value, by itself.
  static int64_t read(Relation relation);
  void close() { UnlockReleaseBuffer(buffer); }

  int64_t value() const;
  // The value is durable when the WAL is flushed up to here.
  XLogRecPtr lsn() const { return BufferGetLSNAtomic(buffer); }
  // REQUIRES an exclusive lock. Returns the LSN of the record.
  XLogRecPtr write(Relation relation, int64_t value);

  // The mark: the value or the witness, whichever is greater.
  int64_t mark() const;
  // The same of a relation that may be any sequence: 0 where it has no witness, and so is no mark.
  static int64_t mark_of_any(Relation relation);
  // Both. REQUIRES an exclusive lock. Returns the LSN of the record.
  XLogRecPtr write_mark(Relation relation, int64_t mark);
};

}  // namespace snowflake::pg
