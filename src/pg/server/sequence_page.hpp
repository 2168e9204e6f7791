// Reads and raises the stored value of a sequence in place, without nextval() and setval().
//
// nextval() and setval() assign a transaction id, so COMMIT flushes and waits for a synchronous
// standby. nextval() and setval() also keep a lock until the end of the transaction, and return no
// LSN. SQL can still call nextval() and setval() on a sequence whose page this code has written.
//
// The format of a sequence's page is internal to PostgreSQL: one tuple, and a magic number in the
// page's special space. Every open() checks that. CREATE EXTENSION checks that SQL reads what this
// code writes, and that this code reads what SQL writes. So a version with another format raises an
// error at once.
#pragma once

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// The sequence's only page. The page stays pinned and locked until close(). A destructor is not
// needed, because PostgreSQL releases the pin and the lock after an error.
//
// The mark is stored twice: as the sequence's value, which SQL shows and dumps contain, and after
// it in the same tuple, as the *witness*. A role with UPDATE on the sequence, such as
// pg_write_all_data, can change the value with setval(). The witness stays unchanged, also in the
// WAL record of setval() and in the new storage of ALTER SEQUENCE, because PostgreSQL copies the
// tuple as a whole. So a lowered value has no effect.
struct SequencePage {
  Buffer buffer;

  static SequencePage open(Relation relation, BufferLock buffer_lock_mode);
  // Does not wait: returns false if another session has locked the page.
  static bool try_open(Relation relation, SequencePage* page);
  // The value without the witness.
  static int64_t read(Relation relation);
  void close() { UnlockReleaseBuffer(buffer); }

  int64_t value() const;
  bool is_called() const;
  // The LSN of the last change. The value is durable when the WAL is flushed up to this LSN.
  XLogRecPtr lsn() const { return BufferGetLSNAtomic(buffer); }
  // Writes the value and sets is_called. REQUIRES an exclusive lock. Returns the LSN of the record.
  XLogRecPtr write(Relation relation, int64_t value);

  // The mark: the value or the witness, whichever is greater.
  int64_t mark() const;
  // Returns the mark of any sequence, or 0 if the sequence has no witness and is therefore not a
  // mark.
  static int64_t mark_of_any(Relation relation);
  // Writes both. REQUIRES an exclusive lock. Returns the LSN of the record.
  XLogRecPtr write_mark(Relation relation, int64_t mark);
};

}  // namespace snowflake::pg
