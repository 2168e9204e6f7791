// Reads and raises the stored value of a sequence in place, without nextval() and setval().
//
// nextval() and setval() assign a transaction id, so COMMIT flushes and waits for a synchronous
// standby. nextval() and setval() also hold a lock until the end of the transaction, and return no
// LSN. SQL can still call nextval() and setval() on a sequence whose page this code has written.
//
// The format of a sequence's page is internal to PostgreSQL: one tuple, and a magic number in the
// page's special space. Every open() checks the format of the page. CREATE EXTENSION checks that
// SQL reads what this code writes, and that this code reads what SQL writes. So a PostgreSQL
// version with another page format raises an error at once.
#pragma once

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// The only page of the sequence. The page stays pinned and locked until close(). A destructor is
// not needed, because PostgreSQL releases the pin and the lock after an error.
//
// The page contains the mark twice: as the sequence's value, which SQL shows and dumps contain, and
// as the *witness*. The witness is in the same tuple, after the value. A role with UPDATE on the
// sequence, such as pg_write_all_data, can change the value with setval(). setval() and ALTER
// SEQUENCE do not change the witness, because PostgreSQL copies the tuple as a whole to the WAL
// record and to the new storage. So a lowered value of the sequence has no effect.
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

  // Returns the mark: the greater of the value and the witness.
  int64_t mark() const;
  // Returns the mark of any sequence, or 0 if the sequence has no witness and is therefore not a
  // mark.
  static int64_t mark_of_any(Relation relation);
  // Writes the value and the witness. REQUIRES an exclusive lock. Returns the LSN of the record.
  XLogRecPtr write_mark(Relation relation, int64_t mark);
};

}  // namespace snowflake::pg
