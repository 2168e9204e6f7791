// Reads and writes the value of a sequence without nextval() and setval().
//
// nextval() and setval() assign a transaction id, so COMMIT flushes WAL and waits for a synchronous
// standby. Both nextval() and setval() hold a lock until the end of the transaction, and return no
// LSN.
//
// The format of a sequence's page is internal to PostgreSQL: one tuple, and a magic number in the
// page's special space. Every call of open() checks the format of the sequence's page. CREATE
// EXTENSION checks that SQL reads what SequencePage wrote, and that SequencePage reads what SQL
// wrote.
#pragma once

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// A sequence has only one page, which stays pinned and locked until close(). SequencePage needs no
// destructor, because PostgreSQL releases buffer pins and locks after an error.
//
// The page contains the high-water mark twice: as the sequence's value, and as a second copy
// (*witness*) in the same tuple. A role with UPDATE on the sequence, such as pg_write_all_data, can
// lower the value with setval(). The commands setval() and ALTER SEQUENCE can change the sequence's
// value, but not the second copy of the high-water mark. The function mark() returns the greater of
// the two copies of the high-water mark, so setval() cannot lower the high-water mark.
struct SequencePage {
  Buffer buffer;

  static SequencePage open(Relation relation, BufferLock buffer_lock_mode);
  // Returns false without waiting if another session has locked the sequence's page.
  static bool try_open(Relation relation, SequencePage* page);
  // Returns only the value of the sequence, and ignores the second copy of the high-water mark
  // (witness).
  static int64_t read(Relation relation);
  void close() { UnlockReleaseBuffer(buffer); }

  int64_t value() const;
  bool is_called() const;
  // The last change of the sequence's page is durable when WAL is flushed up to the returned LSN.
  XLogRecPtr lsn() const { return BufferGetLSNAtomic(buffer); }
  XLogRecPtr write(Relation relation, int64_t value);

  // Returns the high-water mark: the greater of the sequence's value and its second copy (witness).
  int64_t mark() const;
  // Returns the high-water mark that `relation` stores, or 0 if `relation` is not a sequence with a
  // high-water mark. Only a sequence with a high-water mark contains a second copy (witness) of its
  // value.
  static int64_t mark_of_any(Relation relation);
  // Writes the high-water mark as the sequence's value and as the second copy (witness). Both
  // write() and write_mark() REQUIRE an exclusive lock on the page, and return the LSN of the WAL
  // record.
  XLogRecPtr write_mark(Relation relation, int64_t mark);
};

}  // namespace snowflake::pg
